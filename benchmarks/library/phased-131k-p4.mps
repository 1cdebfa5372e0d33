* phased-131k-p4 (1420fc5e6c5f7aec221c26dcaeaa959e611f018fe562fa8d4f17392bd8dcffff), formulation 'choice'
* minimizes tco in USD; the plan is optimal with value 1105441816.77056
* the program at the start of the search, which may add cuts; variables have the names of docs/mathematics.md
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
