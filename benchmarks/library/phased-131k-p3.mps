* phased-131k-p3 (d6f4c4134ef545d6d268875d8a017493f1734cd8c19cf1125573fdbfe8dcfc65), formulation 'choice'
* minimizes tco in USD; the plan is optimal with value 516994956.7488
* the program at the start of the search, which may add cuts; variables have the names of docs/mathematics.md
NAME        coopt
ROWS
 N  Obj     
 E  one_option_0
 L  limited_phase_0_gpus
 L  limited_phase_1_gpus
 L  limited_phase_2_gpus
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    z_0       Obj       516994956.7488001
    z_0       one_option_0  1
    z_0       limited_phase_0_gpus  1
    z_0       limited_phase_1_gpus  1
    z_0       limited_phase_2_gpus  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_option_0  1
    RHS_V     limited_phase_0_gpus  1.0000000010000001
    RHS_V     limited_phase_1_gpus  1.0000000010000001
    RHS_V     limited_phase_2_gpus  1.0000000010000001
BOUNDS
 BV BOUND     z_0     
ENDATA
