* tiny-64 (f5197e339186a0603f966239987a9159731dfcb1e30f8858d561a77f78de11e7), formulation 'network'
* minimizes capex in USD; the plan is optimal with value 181888.0
* y_f: whether family f is built, u_f: uplinks of a leaf, s_f: spines of a plane, z_c: whether column c is used; families in one context have the same domains and NICs
* y_0: 8 x hgx-h100-8 (8 active), 1-tier rail-only of 64x400g, 1 x cx7-400g; 0 to 0 uplinks
* y_1: 8 x hgx-h100-8 (8 active), 1-tier clos of 64x400g, 1 x cx7-400g; 0 to 0 uplinks
* y_2: 4 x h100-hb16 (16 active), 1-tier rail-only of 64x400g, 1 x cx7-400g; 0 to 0 uplinks
* y_3: 4 x h100-hb16 (16 active), 1-tier clos of 64x400g, 1 x cx7-400g; 0 to 0 uplinks
* z_0: workload 'training' on families of context 0, with at least 0 uplinks
* z_1: workload 'training' on families of context 1, with at least 0 uplinks
NAME        coopt
ROWS
 N  Obj     
 E  one_family
 L  least_uplinks_0
 L  least_uplinks_1
 L  least_uplinks_2
 L  least_uplinks_3
 L  most_uplinks_0
 L  most_uplinks_1
 L  most_uplinks_2
 L  most_uplinks_3
 E  spine_ports_0
 E  spine_ports_1
 E  spine_ports_2
 E  spine_ports_3
 E  mapping_0_0
 E  mapping_0_1
 L  uplinks_demanded_0_0
 L  uplinks_demanded_0_1
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    y_0       Obj       181888
    y_0       one_family  1
    y_0       mapping_0_0  -1
    y_1       Obj       181888
    y_1       one_family  1
    y_1       mapping_0_0  -1
    y_2       Obj       488032
    y_2       one_family  1
    y_2       mapping_0_1  -1
    y_3       Obj       488032
    y_3       one_family  1
    y_3       mapping_0_1  -1
    u_0       least_uplinks_0  -1
    u_0       most_uplinks_0  1
    u_0       uplinks_demanded_0_0  -1
    u_1       least_uplinks_1  -1
    u_1       most_uplinks_1  1
    u_1       uplinks_demanded_0_0  -1
    u_2       least_uplinks_2  -1
    u_2       most_uplinks_2  1
    u_2       uplinks_demanded_0_1  -1
    u_3       least_uplinks_3  -1
    u_3       most_uplinks_3  1
    u_3       uplinks_demanded_0_1  -1
    s_0       spine_ports_0  1
    s_1       spine_ports_1  1
    s_2       spine_ports_2  1
    s_3       spine_ports_3  1
    z_0       mapping_0_0  1
    z_1       mapping_0_1  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_family  1
BOUNDS
 BV BOUND     y_0     
 BV BOUND     y_1     
 BV BOUND     y_2     
 BV BOUND     y_3     
 FX BOUND     u_0       0
 FX BOUND     u_1       0
 FX BOUND     u_2       0
 FX BOUND     u_3       0
 FX BOUND     s_0       0
 FX BOUND     s_1       0
 FX BOUND     s_2       0
 FX BOUND     s_3       0
 BV BOUND     z_0     
 BV BOUND     z_1     
ENDATA
