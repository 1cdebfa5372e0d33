* phased-128 (17ee740cb57e5311c66abc0c8258d580c888ea55f1067ba74499409d9577170d), formulation 'choice'
* minimizes capex in USD; the plan: optimal, value 343840.0
* as the search begins, which may add cuts; variables have the names of the mathematics
NAME        coopt
ROWS
 N  Obj     
 E  one_option_0
 L  limited_phase_0_gpus
 L  limited_phase_1_gpus
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    z_0       Obj       343840.00000000006
    z_0       one_option_0  1
    z_0       limited_phase_0_gpus  1
    z_0       limited_phase_1_gpus  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_option_0  1
    RHS_V     limited_phase_0_gpus  1.0000000010000001
    RHS_V     limited_phase_1_gpus  1.0000000010000001
BOUNDS
 BV BOUND     z_0     
ENDATA
