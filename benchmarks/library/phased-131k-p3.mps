* phased-131k-p3 (918ffcd12657a3c2a37719ece8e8b2eeb7650f29fc4d34deae195ecbe10ebc78), formulation 'choice'
* minimizes tco in USD; the plan: optimal, value 516994956.7488
* as the search begins, which may add cuts; variables have the names of the mathematics
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
