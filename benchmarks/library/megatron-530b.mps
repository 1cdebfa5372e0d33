* megatron-530b (99adc513edaa78cd6218a94f955e095248d109bdd66f457a35cba198d1af7405), formulation 'uplinks'
* minimizes capex in USD; the plan: optimal, value 854760.0
* y_f builds family f, u_f: uplinks of a leaf, s_f: spines of a plane, z_c uses column c
* y_0: 35 x hgx-a100-8 (8 active), 2-tier rail-optimized of 40x200g, 1 x cx6-200g; 20 to 20 uplinks
* z_0: 'selective' on families of context 0, from 1 uplinks
NAME        coopt
ROWS
 N  Obj     
 E  one_family
 L  least_uplinks_0
 L  most_uplinks_0
 L  spine_ports_0
 E  mapping_0_0
 L  uplinks_demanded_0_0
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    y_0       Obj       578440
    y_0       one_family  1
    y_0       least_uplinks_0  20
    y_0       most_uplinks_0  -20
    y_0       mapping_0_0  -1
    u_0       Obj       6336
    u_0       least_uplinks_0  -1
    u_0       most_uplinks_0  1
    u_0       spine_ports_0  16
    u_0       uplinks_demanded_0_0  -1
    s_0       Obj       14960
    s_0       spine_ports_0  -32
    z_0       mapping_0_0  1
    z_0       uplinks_demanded_0_0  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_family  1
BOUNDS
 BV BOUND     y_0     
 UI BOUND     u_0       20
 UI BOUND     s_0       10
 BV BOUND     z_0     
ENDATA
