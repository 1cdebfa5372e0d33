* planes-131k (9dd4da4476dd52a332e18c54e814175dbb091919fd28f0a910f392f7862a599d), formulation 'network'
* minimizes tco in USD; the plan is optimal with value 1567855345.664
* y_f: whether family f is built, u_f: uplinks of a leaf, s_f: spines of a plane, z_c: whether column c is used; families in one context have the same domains and NICs
* y_0: 16384 x hgx-b300-8 (8 active), 3-tier rail-optimized of 51t, 1 x cx8-800g; 64 to 64 uplinks
* y_1: 16384 x hgx-b300-8 (8 active), 3-tier rail-optimized of 51t, 1 x cx8-800g; 128 to 128 uplinks
* y_2: 16384 x hgx-b300-8 (8 active), 2-tier rail-optimized of 51t, 1 x cx8-800g; 256 to 256 uplinks
* y_3: 16384 x hgx-b300-8 (8 active), 3-tier clos of 51t, 1 x cx8-800g; 64 to 64 uplinks
* y_4: 16384 x hgx-b300-8 (8 active), 3-tier clos of 51t, 1 x cx8-800g; 128 to 128 uplinks
* y_5: 16384 x hgx-b300-8 (8 active), 2-tier clos of 51t, 1 x cx8-800g; 256 to 256 uplinks
* z_0: workload 'pre-training' on families of context 0, with at least 3 uplinks
* z_1: workload 'pre-training' on families of context 1, with at least 5 uplinks
* z_2: workload 'pre-training' on families of context 2, with at least 5 uplinks
* z_3: workload 'pre-training' on families of context 3, with at least 5 uplinks
* z_4: workload 'pre-training' on families of context 4, with at least 7 uplinks
* z_5: workload 'pre-training' on families of context 5, with at least 9 uplinks
NAME        coopt
ROWS
 N  Obj     
 E  one_family
 L  least_uplinks_0
 L  least_uplinks_1
 L  least_uplinks_2
 L  least_uplinks_3
 L  least_uplinks_4
 L  least_uplinks_5
 L  most_uplinks_0
 L  most_uplinks_1
 L  most_uplinks_2
 L  most_uplinks_3
 L  most_uplinks_4
 L  most_uplinks_5
 E  spine_ports_0
 E  spine_ports_1
 L  spine_ports_2
 E  spine_ports_3
 E  spine_ports_4
 L  spine_ports_5
 E  mapping_0_0
 E  mapping_0_1
 E  mapping_0_2
 E  mapping_0_3
 E  mapping_0_4
 E  mapping_0_5
 L  uplinks_demanded_0_0
 L  uplinks_demanded_0_1
 L  uplinks_demanded_0_2
 L  uplinks_demanded_0_3
 L  uplinks_demanded_0_4
 L  uplinks_demanded_0_5
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    y_0       Obj       2275390652.4159999
    y_0       one_family  1
    y_0       least_uplinks_0  64
    y_0       most_uplinks_0  -64
    y_0       mapping_0_0  -1
    y_1       Obj       2275390652.4159999
    y_1       one_family  1
    y_1       least_uplinks_1  128
    y_1       most_uplinks_1  -128
    y_1       mapping_0_1  -1
    y_2       Obj       1567855345.664
    y_2       one_family  1
    y_2       least_uplinks_2  256
    y_2       most_uplinks_2  -256
    y_2       mapping_0_2  -1
    y_3       Obj       2275390652.4159999
    y_3       one_family  1
    y_3       least_uplinks_3  64
    y_3       most_uplinks_3  -64
    y_3       mapping_0_3  -1
    y_4       Obj       2275390652.4159999
    y_4       one_family  1
    y_4       least_uplinks_4  128
    y_4       most_uplinks_4  -128
    y_4       mapping_0_4  -1
    y_5       Obj       1567855345.664
    y_5       one_family  1
    y_5       least_uplinks_5  256
    y_5       most_uplinks_5  -256
    y_5       mapping_0_5  -1
    u_0       least_uplinks_0  -1
    u_0       most_uplinks_0  1
    u_0       uplinks_demanded_0_0  -1
    u_1       least_uplinks_1  -1
    u_1       most_uplinks_1  1
    u_1       uplinks_demanded_0_1  -1
    u_2       least_uplinks_2  -1
    u_2       most_uplinks_2  1
    u_2       spine_ports_2  512
    u_2       uplinks_demanded_0_2  -1
    u_3       least_uplinks_3  -1
    u_3       most_uplinks_3  1
    u_3       uplinks_demanded_0_3  -1
    u_4       least_uplinks_4  -1
    u_4       most_uplinks_4  1
    u_4       uplinks_demanded_0_4  -1
    u_5       least_uplinks_5  -1
    u_5       most_uplinks_5  1
    u_5       spine_ports_5  512
    u_5       uplinks_demanded_0_5  -1
    s_0       spine_ports_0  1
    s_1       spine_ports_1  1
    s_2       spine_ports_2  -512
    s_3       spine_ports_3  1
    s_4       spine_ports_4  1
    s_5       spine_ports_5  -512
    z_0       mapping_0_0  1
    z_0       uplinks_demanded_0_0  3
    z_1       mapping_0_1  1
    z_1       uplinks_demanded_0_1  5
    z_2       mapping_0_2  1
    z_2       uplinks_demanded_0_2  5
    z_3       mapping_0_3  1
    z_3       uplinks_demanded_0_3  5
    z_4       mapping_0_4  1
    z_4       uplinks_demanded_0_4  7
    z_5       mapping_0_5  1
    z_5       uplinks_demanded_0_5  9
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_family  1
BOUNDS
 BV BOUND     y_0     
 BV BOUND     y_1     
 BV BOUND     y_2     
 BV BOUND     y_3     
 BV BOUND     y_4     
 BV BOUND     y_5     
 UI BOUND     u_0       64
 UI BOUND     u_1       128
 UI BOUND     u_2       256
 UI BOUND     u_3       64
 UI BOUND     u_4       128
 UI BOUND     u_5       256
 FX BOUND     s_0       0
 FX BOUND     s_1       0
 UI BOUND     s_2       256
 FX BOUND     s_3       0
 FX BOUND     s_4       0
 UI BOUND     s_5       256
 BV BOUND     z_0     
 BV BOUND     z_1     
 BV BOUND     z_2     
 BV BOUND     z_3     
 BV BOUND     z_4     
 BV BOUND     z_5     
ENDATA
