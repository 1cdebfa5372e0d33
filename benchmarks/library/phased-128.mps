* phased-128 (8bc7c38a79147e3913849829c70bf7ef56dbf992c6b21a2fce513b608354d978), formulation 'choice'
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
