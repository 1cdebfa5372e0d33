* phased-131k-p4 (5d9cb0a185ad6557c10a6272e6b31831e49606227aa993b098ea1a8944200190), formulation 'choice'
* minimizes tco in USD; the plan: optimal, value 1105441816.77056
* as the search begins, which may add cuts; variables have the names of the mathematics
NAME        coopt
ROWS
 N  Obj     
 E  one_option_0
 L  limited_phase_0_gpus
 L  limited_phase_1_gpus
 L  limited_phase_2_gpus
 L  limited_phase_3_gpus
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    z_0       Obj       1105441816.77056
    z_0       one_option_0  1
    z_0       limited_phase_0_gpus  1
    z_0       limited_phase_1_gpus  1
    z_0       limited_phase_2_gpus  1
    z_0       limited_phase_3_gpus  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_option_0  1
    RHS_V     limited_phase_0_gpus  1.0000000010000001
    RHS_V     limited_phase_1_gpus  1.0000000010000001
    RHS_V     limited_phase_2_gpus  1.0000000010000001
    RHS_V     limited_phase_3_gpus  1.0000000010000001
BOUNDS
 BV BOUND     z_0     
ENDATA
