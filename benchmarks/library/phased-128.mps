* phased-128 (b9f9e6053f3206b553105657afbb3da80aff1e61a8672f13cd44a5c4a600dc77), formulation 'choice'
* minimizes capex in USD; the plan is optimal with value 343840.0
* the program at the start of the search, which may add cuts; variables have the names of docs/mathematics.md
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
