* megatron-530b (b3ba79c9f2ce3f09a6f7096850bac01f2101149ef6591247fb06f0f309e82763), formulation 'network'
* minimizes capex in USD; the plan is optimal with value 827128.0
* y_f: whether family f is built, u_f: uplinks of a leaf, s_f: spines of a plane, z_c: whether column c is used; families in one context have the same domains and NICs
* y_0: 35 x hgx-a100-8 (8 active), 2-tier rail-optimized of 40x200g, 1 x cx6-200g; 20 to 20 uplinks
* y_1: 35 x hgx-a100-8 (8 active), 2-tier rail-optimized of 40x200g, 1 x cx6-200g; 18 to 18 uplinks
* z_0: workload 'selective' on families of context 0, with at least 1 uplink
* z_1: workload 'selective' on families of context 1, with at least 1 uplink
NAME        coopt
ROWS
 N  Obj     
 E  one_family
 L  least_uplinks_0
 L  least_uplinks_1
 L  most_uplinks_0
 L  most_uplinks_1
 L  spine_ports_0
 L  spine_ports_1
 E  mapping_0_0
 E  mapping_0_1
 L  uplinks_demanded_0_0
 L  uplinks_demanded_0_1
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    y_0       Obj       854760
    y_0       one_family  1
    y_0       least_uplinks_0  20
    y_0       most_uplinks_0  -20
    y_0       mapping_0_0  -1
    y_1       Obj       827128
    y_1       one_family  1
    y_1       least_uplinks_1  18
    y_1       most_uplinks_1  -18
    y_1       mapping_0_1  -1
    u_0       least_uplinks_0  -1
    u_0       most_uplinks_0  1
    u_0       spine_ports_0  16
    u_0       uplinks_demanded_0_0  -1
    u_1       least_uplinks_1  -1
    u_1       most_uplinks_1  1
    u_1       spine_ports_1  16
    u_1       uplinks_demanded_0_1  -1
    s_0       spine_ports_0  -32
    s_1       spine_ports_1  -32
    z_0       mapping_0_0  1
    z_0       uplinks_demanded_0_0  1
    z_1       mapping_0_1  1
    z_1       uplinks_demanded_0_1  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_family  1
BOUNDS
 BV BOUND     y_0     
 BV BOUND     y_1     
 UI BOUND     u_0       20
 UI BOUND     u_1       18
 UI BOUND     s_0       10
 UI BOUND     s_1       9
 BV BOUND     z_0     
 BV BOUND     z_1     
ENDATA
