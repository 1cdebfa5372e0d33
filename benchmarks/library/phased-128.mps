* phased-128 (37619edb567a219d0e94ed3a4e1dd3ec6c763cfa4bf3e913411bd0aba2ddeeae), formulation 'phases'
* minimizes capex in USD; the plan: optimal, value 343840.0
* as the search begins, which may add cuts; variables have the names of the mathematics
NAME        coopt
ROWS
 N  Obj     
 E  one_line
 L  least_uplinks_0_0
 L  least_uplinks_0_1
 L  least_uplinks_1_0
 L  least_uplinks_1_1
 L  least_uplinks_2_0
 L  least_uplinks_2_1
 L  least_uplinks_3_0
 L  least_uplinks_3_1
 L  least_uplinks_4_0
 L  least_uplinks_4_1
 L  least_uplinks_5_0
 L  least_uplinks_5_1
 L  least_uplinks_6_0
 L  least_uplinks_6_1
 L  least_uplinks_7_0
 L  least_uplinks_7_1
 L  least_uplinks_8_0
 L  least_uplinks_8_1
 L  least_uplinks_9_0
 L  least_uplinks_9_1
 L  least_uplinks_10_0
 L  least_uplinks_10_1
 L  least_uplinks_11_0
 L  least_uplinks_11_1
 L  least_uplinks_12_0
 L  least_uplinks_12_1
 L  least_uplinks_13_0
 L  least_uplinks_13_1
 L  least_uplinks_14_0
 L  least_uplinks_14_1
 L  least_uplinks_15_0
 L  least_uplinks_15_1
 L  least_uplinks_16_0
 L  least_uplinks_16_1
 L  least_uplinks_17_0
 L  least_uplinks_17_1
 L  least_uplinks_18_0
 L  least_uplinks_18_1
 L  least_uplinks_19_0
 L  least_uplinks_19_1
 L  least_uplinks_20_0
 L  least_uplinks_20_1
 L  least_uplinks_21_0
 L  least_uplinks_21_1
 L  least_uplinks_22_0
 L  least_uplinks_22_1
 L  least_uplinks_23_0
 L  least_uplinks_23_1
 L  least_uplinks_24_0
 L  least_uplinks_24_1
 L  least_uplinks_25_0
 L  least_uplinks_25_1
 L  least_uplinks_26_0
 L  least_uplinks_26_1
 L  least_uplinks_27_0
 L  least_uplinks_27_1
 L  least_uplinks_28_0
 L  least_uplinks_28_1
 L  least_uplinks_29_0
 L  least_uplinks_29_1
 L  least_uplinks_30_0
 L  least_uplinks_30_1
 L  least_uplinks_31_0
 L  least_uplinks_31_1
 L  least_uplinks_32_0
 L  least_uplinks_32_1
 L  least_uplinks_33_0
 L  least_uplinks_33_1
 L  least_uplinks_34_0
 L  least_uplinks_34_1
 L  most_uplinks_0_0
 L  most_uplinks_0_1
 L  most_uplinks_1_0
 L  most_uplinks_1_1
 L  most_uplinks_2_0
 L  most_uplinks_2_1
 L  most_uplinks_3_0
 L  most_uplinks_3_1
 L  most_uplinks_4_0
 L  most_uplinks_4_1
 L  most_uplinks_5_0
 L  most_uplinks_5_1
 L  most_uplinks_6_0
 L  most_uplinks_6_1
 L  most_uplinks_7_0
 L  most_uplinks_7_1
 L  most_uplinks_8_0
 L  most_uplinks_8_1
 L  most_uplinks_9_0
 L  most_uplinks_9_1
 L  most_uplinks_10_0
 L  most_uplinks_10_1
 L  most_uplinks_11_0
 L  most_uplinks_11_1
 L  most_uplinks_12_0
 L  most_uplinks_12_1
 L  most_uplinks_13_0
 L  most_uplinks_13_1
 L  most_uplinks_14_0
 L  most_uplinks_14_1
 L  most_uplinks_15_0
 L  most_uplinks_15_1
 L  most_uplinks_16_0
 L  most_uplinks_16_1
 L  most_uplinks_17_0
 L  most_uplinks_17_1
 L  most_uplinks_18_0
 L  most_uplinks_18_1
 L  most_uplinks_19_0
 L  most_uplinks_19_1
 L  most_uplinks_20_0
 L  most_uplinks_20_1
 L  most_uplinks_21_0
 L  most_uplinks_21_1
 L  most_uplinks_22_0
 L  most_uplinks_22_1
 L  most_uplinks_23_0
 L  most_uplinks_23_1
 L  most_uplinks_24_0
 L  most_uplinks_24_1
 L  most_uplinks_25_0
 L  most_uplinks_25_1
 L  most_uplinks_26_0
 L  most_uplinks_26_1
 L  most_uplinks_27_0
 L  most_uplinks_27_1
 L  most_uplinks_28_0
 L  most_uplinks_28_1
 L  most_uplinks_29_0
 L  most_uplinks_29_1
 L  most_uplinks_30_0
 L  most_uplinks_30_1
 L  most_uplinks_31_0
 L  most_uplinks_31_1
 L  most_uplinks_32_0
 L  most_uplinks_32_1
 L  most_uplinks_33_0
 L  most_uplinks_33_1
 L  most_uplinks_34_0
 L  most_uplinks_34_1
 L  growth_0_1
 L  growth_1_1
 L  growth_2_1
 L  growth_3_1
 L  growth_4_1
 L  growth_5_1
 L  growth_6_1
 L  growth_7_1
 L  growth_8_1
 L  growth_9_1
 L  growth_10_1
 L  growth_11_1
 L  growth_12_1
 L  growth_13_1
 L  growth_14_1
 L  growth_15_1
 L  growth_16_1
 L  growth_17_1
 L  growth_18_1
 L  growth_19_1
 L  growth_20_1
 L  growth_21_1
 L  growth_22_1
 L  growth_23_1
 L  growth_24_1
 L  growth_25_1
 L  growth_26_1
 L  growth_27_1
 L  growth_28_1
 L  growth_29_1
 L  growth_30_1
 L  growth_31_1
 L  growth_32_1
 L  growth_33_1
 L  growth_34_1
 E  spines_of_phases_0_0
 L  spines_of_phases_0_1
 E  spines_of_phases_1_0
 L  spines_of_phases_1_1
 E  spines_of_phases_2_0
 L  spines_of_phases_2_1
 E  spines_of_phases_3_0
 L  spines_of_phases_3_1
 E  spines_of_phases_4_0
 E  spines_of_phases_4_1
 L  spines_of_phases_5_0
 L  spines_of_phases_5_1
 L  spines_of_phases_6_0
 L  spines_of_phases_6_1
 L  spines_of_phases_7_0
 L  spines_of_phases_7_1
 E  spines_of_phases_8_0
 E  spines_of_phases_8_1
 E  spines_of_phases_9_0
 E  spines_of_phases_9_1
 E  spines_of_phases_10_0
 E  spines_of_phases_10_1
 E  spines_of_phases_11_0
 E  spines_of_phases_11_1
 E  spines_of_phases_12_0
 E  spines_of_phases_12_1
 E  spines_of_phases_13_0
 E  spines_of_phases_13_1
 E  spines_of_phases_14_0
 E  spines_of_phases_14_1
 E  spines_of_phases_15_0
 E  spines_of_phases_15_1
 L  spines_of_phases_16_0
 E  spines_of_phases_16_1
 L  spines_of_phases_17_0
 L  spines_of_phases_17_1
 E  spines_of_phases_18_0
 E  spines_of_phases_18_1
 E  spines_of_phases_19_0
 E  spines_of_phases_19_1
 L  spines_of_phases_20_0
 L  spines_of_phases_20_1
 E  spines_of_phases_21_0
 E  spines_of_phases_21_1
 E  spines_of_phases_22_0
 E  spines_of_phases_22_1
 E  spines_of_phases_23_0
 E  spines_of_phases_23_1
 E  spines_of_phases_24_0
 E  spines_of_phases_24_1
 E  spines_of_phases_25_0
 E  spines_of_phases_25_1
 E  spines_of_phases_26_0
 E  spines_of_phases_26_1
 E  spines_of_phases_27_0
 E  spines_of_phases_27_1
 E  spines_of_phases_28_0
 E  spines_of_phases_28_1
 L  spines_of_phases_29_0
 E  spines_of_phases_29_1
 L  spines_of_phases_30_0
 L  spines_of_phases_30_1
 L  spines_of_phases_31_0
 L  spines_of_phases_31_1
 L  spines_of_phases_32_0
 L  spines_of_phases_32_1
 L  spines_of_phases_33_0
 L  spines_of_phases_33_1
 L  spines_of_phases_34_0
 L  spines_of_phases_34_1
 L  purchases_0_0
 L  purchases_0_1
 L  purchases_0_2
 L  purchases_0_3
 L  purchases_0_4
 L  purchases_0_5
 L  purchases_1_0
 L  purchases_1_1
 L  purchases_1_2
 L  purchases_1_3
 L  purchases_1_4
 L  purchases_1_5
COLUMNS
    x_0_0     purchases_0_0  -1
    x_0_0     purchases_1_0  -1
    x_0_1     Obj       1750
    x_0_1     purchases_0_1  -1
    x_0_1     purchases_1_1  -1
    x_0_2     Obj       5000
    x_0_2     purchases_0_2  -1
    x_0_2     purchases_1_2  -1
    x_0_3     Obj       199
    x_0_3     purchases_0_3  -1
    x_0_3     purchases_1_3  -1
    x_0_4     Obj       11000
    x_0_4     purchases_0_4  -1
    x_0_4     purchases_1_4  -1
    x_0_5     Obj       4783.5
    x_0_5     purchases_0_5  -1
    x_0_5     purchases_1_5  -1
    x_1_0     purchases_1_0  -1
    x_1_1     Obj       1750
    x_1_1     purchases_1_1  -1
    x_1_2     Obj       4000
    x_1_2     purchases_1_2  -1
    x_1_3     Obj       99.5
    x_1_3     purchases_1_3  -1
    x_1_4     Obj       8800
    x_1_4     purchases_1_4  -1
    x_1_5     Obj       4783.5
    x_1_5     purchases_1_5  -1
    MARK0000  'MARKER'                 'INTORG'
    u_0_0     Obj       -400
    u_0_0     least_uplinks_0_0  -1
    u_0_0     most_uplinks_0_0  1
    u_0_0     growth_0_1  1
    u_0_1     Obj       400
    u_0_1     least_uplinks_0_1  -1
    u_0_1     most_uplinks_0_1  1
    u_0_1     growth_0_1  -1
    u_0_1     spines_of_phases_0_1  4
    u_0_1     purchases_1_3  64
    u_1_0     Obj       -400
    u_1_0     least_uplinks_1_0  -1
    u_1_0     most_uplinks_1_0  1
    u_1_0     growth_1_1  1
    u_1_1     Obj       400
    u_1_1     least_uplinks_1_1  -1
    u_1_1     most_uplinks_1_1  1
    u_1_1     growth_1_1  -1
    u_1_1     spines_of_phases_1_1  4
    u_1_1     purchases_1_3  64
    u_2_0     Obj       -400
    u_2_0     least_uplinks_2_0  -1
    u_2_0     most_uplinks_2_0  1
    u_2_0     growth_2_1  1
    u_2_1     Obj       400
    u_2_1     least_uplinks_2_1  -1
    u_2_1     most_uplinks_2_1  1
    u_2_1     growth_2_1  -1
    u_2_1     spines_of_phases_2_1  4
    u_2_1     purchases_1_3  64
    u_3_0     Obj       -400
    u_3_0     least_uplinks_3_0  -1
    u_3_0     most_uplinks_3_0  1
    u_3_0     growth_3_1  1
    u_3_1     Obj       400
    u_3_1     least_uplinks_3_1  -1
    u_3_1     most_uplinks_3_1  1
    u_3_1     growth_3_1  -1
    u_3_1     spines_of_phases_3_1  3
    u_3_1     purchases_1_3  48
    u_4_0     least_uplinks_4_0  -1
    u_4_0     most_uplinks_4_0  1
    u_4_0     growth_4_1  1
    u_4_1     least_uplinks_4_1  -1
    u_4_1     most_uplinks_4_1  1
    u_4_1     growth_4_1  -1
    u_5_0     Obj       -400
    u_5_0     least_uplinks_5_0  -1
    u_5_0     most_uplinks_5_0  1
    u_5_0     growth_5_1  1
    u_5_0     spines_of_phases_5_0  8
    u_5_0     purchases_0_3  16
    u_5_1     Obj       400
    u_5_1     least_uplinks_5_1  -1
    u_5_1     most_uplinks_5_1  1
    u_5_1     growth_5_1  -1
    u_5_1     spines_of_phases_5_1  16
    u_5_1     purchases_1_3  32
    u_6_0     Obj       -400
    u_6_0     least_uplinks_6_0  -1
    u_6_0     most_uplinks_6_0  1
    u_6_0     growth_6_1  1
    u_6_0     spines_of_phases_6_0  8
    u_6_0     purchases_0_3  16
    u_6_1     Obj       400
    u_6_1     least_uplinks_6_1  -1
    u_6_1     most_uplinks_6_1  1
    u_6_1     growth_6_1  -1
    u_6_1     spines_of_phases_6_1  16
    u_6_1     purchases_1_3  32
    u_7_0     Obj       -400
    u_7_0     least_uplinks_7_0  -1
    u_7_0     most_uplinks_7_0  1
    u_7_0     growth_7_1  1
    u_7_0     spines_of_phases_7_0  8
    u_7_0     purchases_0_3  16
    u_7_1     Obj       400
    u_7_1     least_uplinks_7_1  -1
    u_7_1     most_uplinks_7_1  1
    u_7_1     growth_7_1  -1
    u_7_1     spines_of_phases_7_1  16
    u_7_1     purchases_1_3  32
    u_8_0     Obj       -400
    u_8_0     least_uplinks_8_0  -1
    u_8_0     most_uplinks_8_0  1
    u_8_0     growth_8_1  1
    u_8_0     purchases_0_2  6
    u_8_0     purchases_0_3  32
    u_8_1     Obj       400
    u_8_1     least_uplinks_8_1  -1
    u_8_1     most_uplinks_8_1  1
    u_8_1     growth_8_1  -1
    u_8_1     purchases_1_2  12
    u_8_1     purchases_1_3  128
    u_9_0     Obj       -400
    u_9_0     least_uplinks_9_0  -1
    u_9_0     most_uplinks_9_0  1
    u_9_0     growth_9_1  1
    u_9_0     purchases_0_2  5
    u_9_0     purchases_0_3  28
    u_9_1     Obj       400
    u_9_1     least_uplinks_9_1  -1
    u_9_1     most_uplinks_9_1  1
    u_9_1     growth_9_1  -1
    u_9_1     purchases_1_2  10
    u_9_1     purchases_1_3  106
    u_10_0    Obj       -400
    u_10_0    least_uplinks_10_0  -1
    u_10_0    most_uplinks_10_0  1
    u_10_0    growth_10_1  1
    u_10_0    purchases_0_2  4
    u_10_0    purchases_0_3  24
    u_10_1    Obj       400
    u_10_1    least_uplinks_10_1  -1
    u_10_1    most_uplinks_10_1  1
    u_10_1    growth_10_1  -1
    u_10_1    purchases_1_2  8
    u_10_1    purchases_1_3  88
    u_11_0    Obj       -350
    u_11_0    least_uplinks_11_0  -1
    u_11_0    most_uplinks_11_0  1
    u_11_0    growth_11_1  1
    u_11_0    purchases_0_2  6
    u_11_0    purchases_0_3  30
    u_11_1    Obj       350
    u_11_1    least_uplinks_11_1  -1
    u_11_1    most_uplinks_11_1  1
    u_11_1    growth_11_1  -1
    u_11_1    purchases_1_2  11
    u_11_1    purchases_1_3  108
    u_12_0    Obj       -350
    u_12_0    least_uplinks_12_0  -1
    u_12_0    most_uplinks_12_0  1
    u_12_0    growth_12_1  1
    u_12_0    purchases_0_2  5
    u_12_0    purchases_0_3  26
    u_12_1    Obj       350
    u_12_1    least_uplinks_12_1  -1
    u_12_1    most_uplinks_12_1  1
    u_12_1    growth_12_1  -1
    u_12_1    purchases_1_2  9
    u_12_1    purchases_1_3  88
    u_13_0    Obj       -350
    u_13_0    least_uplinks_13_0  -1
    u_13_0    most_uplinks_13_0  1
    u_13_0    growth_13_1  1
    u_13_0    purchases_0_2  4
    u_13_0    purchases_0_3  22
    u_13_1    Obj       350
    u_13_1    least_uplinks_13_1  -1
    u_13_1    most_uplinks_13_1  1
    u_13_1    growth_13_1  -1
    u_13_1    purchases_1_2  7
    u_13_1    purchases_1_3  72
    u_14_0    Obj       -300
    u_14_0    least_uplinks_14_0  -1
    u_14_0    most_uplinks_14_0  1
    u_14_0    growth_14_1  1
    u_14_0    purchases_0_2  6
    u_14_0    purchases_0_3  28
    u_14_1    Obj       300
    u_14_1    least_uplinks_14_1  -1
    u_14_1    most_uplinks_14_1  1
    u_14_1    growth_14_1  -1
    u_14_1    purchases_1_2  10
    u_14_1    purchases_1_3  92
    u_15_0    Obj       -300
    u_15_0    least_uplinks_15_0  -1
    u_15_0    most_uplinks_15_0  1
    u_15_0    growth_15_1  1
    u_15_0    purchases_0_2  5
    u_15_0    purchases_0_3  24
    u_15_1    Obj       300
    u_15_1    least_uplinks_15_1  -1
    u_15_1    most_uplinks_15_1  1
    u_15_1    growth_15_1  -1
    u_15_1    purchases_1_2  8
    u_15_1    purchases_1_3  74
    u_16_0    Obj       -200
    u_16_0    least_uplinks_16_0  -1
    u_16_0    most_uplinks_16_0  1
    u_16_0    growth_16_1  1
    u_16_0    spines_of_phases_16_0  6
    u_16_0    purchases_0_3  12
    u_16_1    Obj       300
    u_16_1    least_uplinks_16_1  -1
    u_16_1    most_uplinks_16_1  1
    u_16_1    growth_16_1  -1
    u_16_1    purchases_1_2  5
    u_16_1    purchases_1_3  60
    u_17_0    Obj       -200
    u_17_0    least_uplinks_17_0  -1
    u_17_0    most_uplinks_17_0  1
    u_17_0    growth_17_1  1
    u_17_0    spines_of_phases_17_0  4
    u_17_0    purchases_0_3  8
    u_17_1    Obj       200
    u_17_1    least_uplinks_17_1  -1
    u_17_1    most_uplinks_17_1  1
    u_17_1    growth_17_1  -1
    u_17_1    spines_of_phases_17_1  16
    u_17_1    purchases_1_3  32
    u_18_0    least_uplinks_18_0  -1
    u_18_0    most_uplinks_18_0  1
    u_18_0    growth_18_1  1
    u_18_1    least_uplinks_18_1  -1
    u_18_1    most_uplinks_18_1  1
    u_18_1    growth_18_1  -1
    u_19_0    least_uplinks_19_0  -1
    u_19_0    most_uplinks_19_0  1
    u_19_0    growth_19_1  1
    u_19_1    least_uplinks_19_1  -1
    u_19_1    most_uplinks_19_1  1
    u_19_1    growth_19_1  -1
    u_20_0    Obj       -800
    u_20_0    least_uplinks_20_0  -1
    u_20_0    most_uplinks_20_0  1
    u_20_0    growth_20_1  1
    u_20_0    spines_of_phases_20_0  16
    u_20_0    purchases_0_3  32
    u_20_1    Obj       800
    u_20_1    least_uplinks_20_1  -1
    u_20_1    most_uplinks_20_1  1
    u_20_1    growth_20_1  -1
    u_20_1    spines_of_phases_20_1  16
    u_20_1    purchases_1_3  32
    u_21_0    Obj       -400
    u_21_0    least_uplinks_21_0  -1
    u_21_0    most_uplinks_21_0  1
    u_21_0    growth_21_1  1
    u_21_0    purchases_0_2  6
    u_21_0    purchases_0_3  32
    u_21_1    Obj       400
    u_21_1    least_uplinks_21_1  -1
    u_21_1    most_uplinks_21_1  1
    u_21_1    growth_21_1  -1
    u_21_1    purchases_1_2  12
    u_21_1    purchases_1_3  128
    u_22_0    Obj       -400
    u_22_0    least_uplinks_22_0  -1
    u_22_0    most_uplinks_22_0  1
    u_22_0    growth_22_1  1
    u_22_0    purchases_0_2  5
    u_22_0    purchases_0_3  28
    u_22_1    Obj       400
    u_22_1    least_uplinks_22_1  -1
    u_22_1    most_uplinks_22_1  1
    u_22_1    growth_22_1  -1
    u_22_1    purchases_1_2  10
    u_22_1    purchases_1_3  106
    u_23_0    Obj       -400
    u_23_0    least_uplinks_23_0  -1
    u_23_0    most_uplinks_23_0  1
    u_23_0    growth_23_1  1
    u_23_0    purchases_0_2  4
    u_23_0    purchases_0_3  24
    u_23_1    Obj       400
    u_23_1    least_uplinks_23_1  -1
    u_23_1    most_uplinks_23_1  1
    u_23_1    growth_23_1  -1
    u_23_1    purchases_1_2  8
    u_23_1    purchases_1_3  88
    u_24_0    Obj       -350
    u_24_0    least_uplinks_24_0  -1
    u_24_0    most_uplinks_24_0  1
    u_24_0    growth_24_1  1
    u_24_0    purchases_0_2  6
    u_24_0    purchases_0_3  30
    u_24_1    Obj       350
    u_24_1    least_uplinks_24_1  -1
    u_24_1    most_uplinks_24_1  1
    u_24_1    growth_24_1  -1
    u_24_1    purchases_1_2  11
    u_24_1    purchases_1_3  108
    u_25_0    Obj       -350
    u_25_0    least_uplinks_25_0  -1
    u_25_0    most_uplinks_25_0  1
    u_25_0    growth_25_1  1
    u_25_0    purchases_0_2  5
    u_25_0    purchases_0_3  26
    u_25_1    Obj       350
    u_25_1    least_uplinks_25_1  -1
    u_25_1    most_uplinks_25_1  1
    u_25_1    growth_25_1  -1
    u_25_1    purchases_1_2  9
    u_25_1    purchases_1_3  88
    u_26_0    Obj       -350
    u_26_0    least_uplinks_26_0  -1
    u_26_0    most_uplinks_26_0  1
    u_26_0    growth_26_1  1
    u_26_0    purchases_0_2  4
    u_26_0    purchases_0_3  22
    u_26_1    Obj       350
    u_26_1    least_uplinks_26_1  -1
    u_26_1    most_uplinks_26_1  1
    u_26_1    growth_26_1  -1
    u_26_1    purchases_1_2  7
    u_26_1    purchases_1_3  72
    u_27_0    Obj       -300
    u_27_0    least_uplinks_27_0  -1
    u_27_0    most_uplinks_27_0  1
    u_27_0    growth_27_1  1
    u_27_0    purchases_0_2  6
    u_27_0    purchases_0_3  28
    u_27_1    Obj       300
    u_27_1    least_uplinks_27_1  -1
    u_27_1    most_uplinks_27_1  1
    u_27_1    growth_27_1  -1
    u_27_1    purchases_1_2  10
    u_27_1    purchases_1_3  92
    u_28_0    Obj       -300
    u_28_0    least_uplinks_28_0  -1
    u_28_0    most_uplinks_28_0  1
    u_28_0    growth_28_1  1
    u_28_0    purchases_0_2  5
    u_28_0    purchases_0_3  24
    u_28_1    Obj       300
    u_28_1    least_uplinks_28_1  -1
    u_28_1    most_uplinks_28_1  1
    u_28_1    growth_28_1  -1
    u_28_1    purchases_1_2  8
    u_28_1    purchases_1_3  74
    u_29_0    Obj       -200
    u_29_0    least_uplinks_29_0  -1
    u_29_0    most_uplinks_29_0  1
    u_29_0    growth_29_1  1
    u_29_0    spines_of_phases_29_0  6
    u_29_0    purchases_0_3  12
    u_29_1    Obj       300
    u_29_1    least_uplinks_29_1  -1
    u_29_1    most_uplinks_29_1  1
    u_29_1    growth_29_1  -1
    u_29_1    purchases_1_2  5
    u_29_1    purchases_1_3  60
    u_30_0    Obj       -200
    u_30_0    least_uplinks_30_0  -1
    u_30_0    most_uplinks_30_0  1
    u_30_0    growth_30_1  1
    u_30_0    spines_of_phases_30_0  4
    u_30_0    purchases_0_3  8
    u_30_1    Obj       200
    u_30_1    least_uplinks_30_1  -1
    u_30_1    most_uplinks_30_1  1
    u_30_1    growth_30_1  -1
    u_30_1    spines_of_phases_30_1  16
    u_30_1    purchases_1_3  32
    u_31_0    Obj       -200
    u_31_0    least_uplinks_31_0  -1
    u_31_0    most_uplinks_31_0  1
    u_31_0    growth_31_1  1
    u_31_0    spines_of_phases_31_0  4
    u_31_0    purchases_0_3  8
    u_31_1    Obj       200
    u_31_1    least_uplinks_31_1  -1
    u_31_1    most_uplinks_31_1  1
    u_31_1    growth_31_1  -1
    u_31_1    spines_of_phases_31_1  13
    u_31_1    purchases_1_3  26
    u_32_0    Obj       -150
    u_32_0    least_uplinks_32_0  -1
    u_32_0    most_uplinks_32_0  1
    u_32_0    growth_32_1  1
    u_32_0    spines_of_phases_32_0  3
    u_32_0    purchases_0_3  6
    u_32_1    Obj       150
    u_32_1    least_uplinks_32_1  -1
    u_32_1    most_uplinks_32_1  1
    u_32_1    growth_32_1  -1
    u_32_1    spines_of_phases_32_1  11
    u_32_1    purchases_1_3  22
    u_33_0    Obj       -200
    u_33_0    least_uplinks_33_0  -1
    u_33_0    most_uplinks_33_0  1
    u_33_0    growth_33_1  1
    u_33_0    spines_of_phases_33_0  4
    u_33_0    purchases_0_3  8
    u_33_1    Obj       200
    u_33_1    least_uplinks_33_1  -1
    u_33_1    most_uplinks_33_1  1
    u_33_1    growth_33_1  -1
    u_33_1    spines_of_phases_33_1  15
    u_33_1    purchases_1_3  30
    u_34_0    Obj       -150
    u_34_0    least_uplinks_34_0  -1
    u_34_0    most_uplinks_34_0  1
    u_34_0    growth_34_1  1
    u_34_0    spines_of_phases_34_0  3
    u_34_0    purchases_0_3  6
    u_34_1    Obj       150
    u_34_1    least_uplinks_34_1  -1
    u_34_1    most_uplinks_34_1  1
    u_34_1    growth_34_1  -1
    u_34_1    spines_of_phases_34_1  12
    u_34_1    purchases_1_3  24
    y_0       one_line  1
    y_0       least_uplinks_0_1  2
    y_0       most_uplinks_0_1  -4
    y_0       purchases_0_0  32
    y_0       purchases_0_1  32
    y_0       purchases_0_2  8
    y_0       purchases_0_3  64
    y_0       purchases_1_0  128
    y_0       purchases_1_1  128
    y_0       purchases_1_2  32
    y_0       purchases_1_3  256
    y_1       one_line  1
    y_1       least_uplinks_1_1  2
    y_1       most_uplinks_1_1  -2
    y_1       purchases_0_0  32
    y_1       purchases_0_1  32
    y_1       purchases_0_2  8
    y_1       purchases_0_3  64
    y_1       purchases_1_0  128
    y_1       purchases_1_1  128
    y_1       purchases_1_2  32
    y_1       purchases_1_3  256
    y_2       one_line  1
    y_2       least_uplinks_2_1  3
    y_2       most_uplinks_2_1  -3
    y_2       purchases_0_0  32
    y_2       purchases_0_1  32
    y_2       purchases_0_2  8
    y_2       purchases_0_3  64
    y_2       purchases_1_0  128
    y_2       purchases_1_1  128
    y_2       purchases_1_2  32
    y_2       purchases_1_3  256
    y_3       one_line  1
    y_3       least_uplinks_3_1  2
    y_3       most_uplinks_3_1  -2
    y_3       purchases_0_0  32
    y_3       purchases_0_1  32
    y_3       purchases_0_2  8
    y_3       purchases_0_3  64
    y_3       purchases_1_0  128
    y_3       purchases_1_1  128
    y_3       purchases_1_2  24
    y_3       purchases_1_3  256
    y_4       one_line  1
    y_4       purchases_0_0  32
    y_4       purchases_0_1  32
    y_4       purchases_0_3  64
    y_4       purchases_0_4  8
    y_4       purchases_1_0  128
    y_4       purchases_1_1  128
    y_4       purchases_1_3  256
    y_4       purchases_1_4  8
    y_5       one_line  1
    y_5       least_uplinks_5_0  2
    y_5       least_uplinks_5_1  3
    y_5       most_uplinks_5_0  -4
    y_5       most_uplinks_5_1  -8
    y_5       purchases_0_0  32
    y_5       purchases_0_1  32
    y_5       purchases_0_3  64
    y_5       purchases_0_4  8
    y_5       purchases_1_0  128
    y_5       purchases_1_1  128
    y_5       purchases_1_3  256
    y_5       purchases_1_4  16
    y_6       one_line  1
    y_6       least_uplinks_6_0  2
    y_6       least_uplinks_6_1  4
    y_6       most_uplinks_6_0  -4
    y_6       most_uplinks_6_1  -6
    y_6       purchases_0_0  32
    y_6       purchases_0_1  32
    y_6       purchases_0_3  64
    y_6       purchases_0_4  8
    y_6       purchases_1_0  128
    y_6       purchases_1_1  128
    y_6       purchases_1_3  256
    y_6       purchases_1_4  16
    y_7       one_line  1
    y_7       least_uplinks_7_0  2
    y_7       least_uplinks_7_1  4
    y_7       most_uplinks_7_0  -4
    y_7       most_uplinks_7_1  -4
    y_7       purchases_0_0  32
    y_7       purchases_0_1  32
    y_7       purchases_0_3  64
    y_7       purchases_0_4  8
    y_7       purchases_1_0  128
    y_7       purchases_1_1  128
    y_7       purchases_1_3  256
    y_7       purchases_1_4  16
    y_8       one_line  1
    y_8       least_uplinks_8_0  2
    y_8       least_uplinks_8_1  2
    y_8       most_uplinks_8_0  -4
    y_8       most_uplinks_8_1  -4
    y_8       purchases_0_0  32
    y_8       purchases_0_1  32
    y_8       purchases_0_2  8
    y_8       purchases_0_3  64
    y_8       purchases_1_0  128
    y_8       purchases_1_1  128
    y_8       purchases_1_2  32
    y_8       purchases_1_3  256
    y_9       one_line  1
    y_9       least_uplinks_9_0  2
    y_9       least_uplinks_9_1  2
    y_9       most_uplinks_9_0  -4
    y_9       most_uplinks_9_1  -4
    y_9       purchases_0_0  32
    y_9       purchases_0_1  32
    y_9       purchases_0_2  8
    y_9       purchases_0_3  64
    y_9       purchases_1_0  128
    y_9       purchases_1_1  128
    y_9       purchases_1_2  32
    y_9       purchases_1_3  256
    y_10      one_line  1
    y_10      least_uplinks_10_0  2
    y_10      least_uplinks_10_1  2
    y_10      most_uplinks_10_0  -4
    y_10      most_uplinks_10_1  -4
    y_10      purchases_0_0  32
    y_10      purchases_0_1  32
    y_10      purchases_0_2  8
    y_10      purchases_0_3  64
    y_10      purchases_1_0  128
    y_10      purchases_1_1  128
    y_10      purchases_1_2  32
    y_10      purchases_1_3  256
    y_11      one_line  1
    y_11      least_uplinks_11_0  2
    y_11      least_uplinks_11_1  2
    y_11      most_uplinks_11_0  -3
    y_11      most_uplinks_11_1  -3
    y_11      purchases_0_0  32
    y_11      purchases_0_1  32
    y_11      purchases_0_2  7
    y_11      purchases_0_3  64
    y_11      purchases_1_0  128
    y_11      purchases_1_1  128
    y_11      purchases_1_2  26
    y_11      purchases_1_3  256
    y_12      one_line  1
    y_12      least_uplinks_12_0  2
    y_12      least_uplinks_12_1  2
    y_12      most_uplinks_12_0  -3
    y_12      most_uplinks_12_1  -3
    y_12      purchases_0_0  32
    y_12      purchases_0_1  32
    y_12      purchases_0_2  7
    y_12      purchases_0_3  64
    y_12      purchases_1_0  128
    y_12      purchases_1_1  128
    y_12      purchases_1_2  26
    y_12      purchases_1_3  256
    y_13      one_line  1
    y_13      least_uplinks_13_0  2
    y_13      least_uplinks_13_1  2
    y_13      most_uplinks_13_0  -3
    y_13      most_uplinks_13_1  -3
    y_13      purchases_0_0  32
    y_13      purchases_0_1  32
    y_13      purchases_0_2  7
    y_13      purchases_0_3  64
    y_13      purchases_1_0  128
    y_13      purchases_1_1  128
    y_13      purchases_1_2  26
    y_13      purchases_1_3  256
    y_14      one_line  1
    y_14      least_uplinks_14_0  2
    y_14      least_uplinks_14_1  2
    y_14      most_uplinks_14_0  -2
    y_14      most_uplinks_14_1  -2
    y_14      purchases_0_0  32
    y_14      purchases_0_1  32
    y_14      purchases_0_2  6
    y_14      purchases_0_3  64
    y_14      purchases_1_0  128
    y_14      purchases_1_1  128
    y_14      purchases_1_2  22
    y_14      purchases_1_3  256
    y_15      one_line  1
    y_15      least_uplinks_15_0  2
    y_15      least_uplinks_15_1  2
    y_15      most_uplinks_15_0  -2
    y_15      most_uplinks_15_1  -2
    y_15      purchases_0_0  32
    y_15      purchases_0_1  32
    y_15      purchases_0_2  6
    y_15      purchases_0_3  64
    y_15      purchases_1_0  128
    y_15      purchases_1_1  128
    y_15      purchases_1_2  22
    y_15      purchases_1_3  256
    y_16      one_line  1
    y_16      least_uplinks_16_0  2
    y_16      least_uplinks_16_1  2
    y_16      most_uplinks_16_0  -2
    y_16      most_uplinks_16_1  -2
    y_16      purchases_0_0  32
    y_16      purchases_0_1  32
    y_16      purchases_0_2  6
    y_16      purchases_0_3  64
    y_16      purchases_1_0  128
    y_16      purchases_1_1  128
    y_16      purchases_1_2  22
    y_16      purchases_1_3  256
    y_17      one_line  1
    y_17      least_uplinks_17_0  3
    y_17      least_uplinks_17_1  3
    y_17      most_uplinks_17_0  -8
    y_17      most_uplinks_17_1  -8
    y_17      purchases_0_0  32
    y_17      purchases_0_1  32
    y_17      purchases_0_3  64
    y_17      purchases_0_4  4
    y_17      purchases_1_0  128
    y_17      purchases_1_1  128
    y_17      purchases_1_3  256
    y_17      purchases_1_4  16
    y_18      one_line  1
    y_18      purchases_0_1  32
    y_18      purchases_0_2  16
    y_18      purchases_0_3  64
    y_18      purchases_0_5  32
    y_18      purchases_1_1  128
    y_18      purchases_1_2  16
    y_18      purchases_1_3  256
    y_18      purchases_1_5  128
    y_19      one_line  1
    y_19      purchases_0_1  32
    y_19      purchases_0_3  64
    y_19      purchases_0_4  8
    y_19      purchases_0_5  32
    y_19      purchases_1_1  128
    y_19      purchases_1_3  256
    y_19      purchases_1_4  8
    y_19      purchases_1_5  128
    y_20      one_line  1
    y_20      least_uplinks_20_0  1
    y_20      least_uplinks_20_1  3
    y_20      most_uplinks_20_0  -2
    y_20      most_uplinks_20_1  -8
    y_20      purchases_0_1  32
    y_20      purchases_0_3  64
    y_20      purchases_0_4  16
    y_20      purchases_0_5  32
    y_20      purchases_1_1  128
    y_20      purchases_1_3  256
    y_20      purchases_1_4  16
    y_20      purchases_1_5  128
    y_21      one_line  1
    y_21      least_uplinks_21_0  2
    y_21      least_uplinks_21_1  2
    y_21      most_uplinks_21_0  -4
    y_21      most_uplinks_21_1  -4
    y_21      purchases_0_1  32
    y_21      purchases_0_2  8
    y_21      purchases_0_3  64
    y_21      purchases_0_5  32
    y_21      purchases_1_1  128
    y_21      purchases_1_2  32
    y_21      purchases_1_3  256
    y_21      purchases_1_5  128
    y_22      one_line  1
    y_22      least_uplinks_22_0  2
    y_22      least_uplinks_22_1  2
    y_22      most_uplinks_22_0  -4
    y_22      most_uplinks_22_1  -4
    y_22      purchases_0_1  32
    y_22      purchases_0_2  8
    y_22      purchases_0_3  64
    y_22      purchases_0_5  32
    y_22      purchases_1_1  128
    y_22      purchases_1_2  32
    y_22      purchases_1_3  256
    y_22      purchases_1_5  128
    y_23      one_line  1
    y_23      least_uplinks_23_0  2
    y_23      least_uplinks_23_1  2
    y_23      most_uplinks_23_0  -4
    y_23      most_uplinks_23_1  -4
    y_23      purchases_0_1  32
    y_23      purchases_0_2  8
    y_23      purchases_0_3  64
    y_23      purchases_0_5  32
    y_23      purchases_1_1  128
    y_23      purchases_1_2  32
    y_23      purchases_1_3  256
    y_23      purchases_1_5  128
    y_24      one_line  1
    y_24      least_uplinks_24_0  2
    y_24      least_uplinks_24_1  2
    y_24      most_uplinks_24_0  -3
    y_24      most_uplinks_24_1  -3
    y_24      purchases_0_1  32
    y_24      purchases_0_2  7
    y_24      purchases_0_3  64
    y_24      purchases_0_5  32
    y_24      purchases_1_1  128
    y_24      purchases_1_2  26
    y_24      purchases_1_3  256
    y_24      purchases_1_5  128
    y_25      one_line  1
    y_25      least_uplinks_25_0  2
    y_25      least_uplinks_25_1  2
    y_25      most_uplinks_25_0  -3
    y_25      most_uplinks_25_1  -3
    y_25      purchases_0_1  32
    y_25      purchases_0_2  7
    y_25      purchases_0_3  64
    y_25      purchases_0_5  32
    y_25      purchases_1_1  128
    y_25      purchases_1_2  26
    y_25      purchases_1_3  256
    y_25      purchases_1_5  128
    y_26      one_line  1
    y_26      least_uplinks_26_0  2
    y_26      least_uplinks_26_1  2
    y_26      most_uplinks_26_0  -3
    y_26      most_uplinks_26_1  -3
    y_26      purchases_0_1  32
    y_26      purchases_0_2  7
    y_26      purchases_0_3  64
    y_26      purchases_0_5  32
    y_26      purchases_1_1  128
    y_26      purchases_1_2  26
    y_26      purchases_1_3  256
    y_26      purchases_1_5  128
    y_27      one_line  1
    y_27      least_uplinks_27_0  2
    y_27      least_uplinks_27_1  2
    y_27      most_uplinks_27_0  -2
    y_27      most_uplinks_27_1  -2
    y_27      purchases_0_1  32
    y_27      purchases_0_2  6
    y_27      purchases_0_3  64
    y_27      purchases_0_5  32
    y_27      purchases_1_1  128
    y_27      purchases_1_2  22
    y_27      purchases_1_3  256
    y_27      purchases_1_5  128
    y_28      one_line  1
    y_28      least_uplinks_28_0  2
    y_28      least_uplinks_28_1  2
    y_28      most_uplinks_28_0  -2
    y_28      most_uplinks_28_1  -2
    y_28      purchases_0_1  32
    y_28      purchases_0_2  6
    y_28      purchases_0_3  64
    y_28      purchases_0_5  32
    y_28      purchases_1_1  128
    y_28      purchases_1_2  22
    y_28      purchases_1_3  256
    y_28      purchases_1_5  128
    y_29      one_line  1
    y_29      least_uplinks_29_0  2
    y_29      least_uplinks_29_1  2
    y_29      most_uplinks_29_0  -2
    y_29      most_uplinks_29_1  -2
    y_29      purchases_0_1  32
    y_29      purchases_0_2  6
    y_29      purchases_0_3  64
    y_29      purchases_0_5  32
    y_29      purchases_1_1  128
    y_29      purchases_1_2  22
    y_29      purchases_1_3  256
    y_29      purchases_1_5  128
    y_30      one_line  1
    y_30      least_uplinks_30_0  3
    y_30      least_uplinks_30_1  3
    y_30      most_uplinks_30_0  -8
    y_30      most_uplinks_30_1  -8
    y_30      purchases_0_1  32
    y_30      purchases_0_3  64
    y_30      purchases_0_4  4
    y_30      purchases_0_5  32
    y_30      purchases_1_1  128
    y_30      purchases_1_3  256
    y_30      purchases_1_4  16
    y_30      purchases_1_5  128
    y_31      one_line  1
    y_31      least_uplinks_31_0  4
    y_31      least_uplinks_31_1  4
    y_31      most_uplinks_31_0  -6
    y_31      most_uplinks_31_1  -6
    y_31      purchases_0_1  32
    y_31      purchases_0_3  64
    y_31      purchases_0_4  4
    y_31      purchases_0_5  32
    y_31      purchases_1_1  128
    y_31      purchases_1_3  256
    y_31      purchases_1_4  13
    y_31      purchases_1_5  128
    y_32      one_line  1
    y_32      least_uplinks_32_0  4
    y_32      least_uplinks_32_1  4
    y_32      most_uplinks_32_0  -4
    y_32      most_uplinks_32_1  -4
    y_32      purchases_0_1  32
    y_32      purchases_0_3  64
    y_32      purchases_0_4  3
    y_32      purchases_0_5  32
    y_32      purchases_1_1  128
    y_32      purchases_1_3  256
    y_32      purchases_1_4  11
    y_32      purchases_1_5  128
    y_33      one_line  1
    y_33      least_uplinks_33_0  3
    y_33      least_uplinks_33_1  3
    y_33      most_uplinks_33_0  -7
    y_33      most_uplinks_33_1  -7
    y_33      purchases_0_1  32
    y_33      purchases_0_3  64
    y_33      purchases_0_4  4
    y_33      purchases_0_5  32
    y_33      purchases_1_1  128
    y_33      purchases_1_3  256
    y_33      purchases_1_4  15
    y_33      purchases_1_5  128
    y_34      one_line  1
    y_34      least_uplinks_34_0  4
    y_34      least_uplinks_34_1  4
    y_34      most_uplinks_34_0  -5
    y_34      most_uplinks_34_1  -5
    y_34      purchases_0_1  32
    y_34      purchases_0_3  64
    y_34      purchases_0_4  3
    y_34      purchases_0_5  32
    y_34      purchases_1_1  128
    y_34      purchases_1_3  256
    y_34      purchases_1_4  12
    y_34      purchases_1_5  128
    s_0_0     spines_of_phases_0_0  1
    s_0_1     spines_of_phases_0_1  -8
    s_0_1     purchases_1_2  8
    s_1_0     spines_of_phases_1_0  1
    s_1_1     spines_of_phases_1_1  -8
    s_1_1     purchases_1_2  8
    s_2_0     spines_of_phases_2_0  1
    s_2_1     spines_of_phases_2_1  -4
    s_2_1     purchases_1_2  8
    s_3_0     spines_of_phases_3_0  1
    s_3_1     spines_of_phases_3_1  -6
    s_3_1     purchases_1_2  8
    s_4_0     spines_of_phases_4_0  1
    s_4_1     spines_of_phases_4_1  1
    s_5_0     spines_of_phases_5_0  -8
    s_5_0     purchases_0_4  1
    s_5_1     spines_of_phases_5_1  -16
    s_5_1     purchases_1_4  1
    s_6_0     spines_of_phases_6_0  -8
    s_6_0     purchases_0_4  1
    s_6_1     spines_of_phases_6_1  -16
    s_6_1     purchases_1_4  1
    s_7_0     spines_of_phases_7_0  -8
    s_7_0     purchases_0_4  1
    s_7_1     spines_of_phases_7_1  -16
    s_7_1     purchases_1_4  1
    s_8_0     spines_of_phases_8_0  1
    s_8_1     spines_of_phases_8_1  1
    s_9_0     spines_of_phases_9_0  1
    s_9_1     spines_of_phases_9_1  1
    s_10_0    spines_of_phases_10_0  1
    s_10_1    spines_of_phases_10_1  1
    s_11_0    spines_of_phases_11_0  1
    s_11_1    spines_of_phases_11_1  1
    s_12_0    spines_of_phases_12_0  1
    s_12_1    spines_of_phases_12_1  1
    s_13_0    spines_of_phases_13_0  1
    s_13_1    spines_of_phases_13_1  1
    s_14_0    spines_of_phases_14_0  1
    s_14_1    spines_of_phases_14_1  1
    s_15_0    spines_of_phases_15_0  1
    s_15_1    spines_of_phases_15_1  1
    s_16_0    spines_of_phases_16_0  -6
    s_16_0    purchases_0_2  1
    s_16_1    spines_of_phases_16_1  1
    s_17_0    spines_of_phases_17_0  -4
    s_17_0    purchases_0_4  1
    s_17_1    spines_of_phases_17_1  -16
    s_17_1    purchases_1_4  1
    s_18_0    spines_of_phases_18_0  1
    s_18_1    spines_of_phases_18_1  1
    s_19_0    spines_of_phases_19_0  1
    s_19_1    spines_of_phases_19_1  1
    s_20_0    spines_of_phases_20_0  -16
    s_20_0    purchases_0_4  1
    s_20_1    spines_of_phases_20_1  -16
    s_20_1    purchases_1_4  1
    s_21_0    spines_of_phases_21_0  1
    s_21_1    spines_of_phases_21_1  1
    s_22_0    spines_of_phases_22_0  1
    s_22_1    spines_of_phases_22_1  1
    s_23_0    spines_of_phases_23_0  1
    s_23_1    spines_of_phases_23_1  1
    s_24_0    spines_of_phases_24_0  1
    s_24_1    spines_of_phases_24_1  1
    s_25_0    spines_of_phases_25_0  1
    s_25_1    spines_of_phases_25_1  1
    s_26_0    spines_of_phases_26_0  1
    s_26_1    spines_of_phases_26_1  1
    s_27_0    spines_of_phases_27_0  1
    s_27_1    spines_of_phases_27_1  1
    s_28_0    spines_of_phases_28_0  1
    s_28_1    spines_of_phases_28_1  1
    s_29_0    spines_of_phases_29_0  -6
    s_29_0    purchases_0_2  1
    s_29_1    spines_of_phases_29_1  1
    s_30_0    spines_of_phases_30_0  -4
    s_30_0    purchases_0_4  1
    s_30_1    spines_of_phases_30_1  -16
    s_30_1    purchases_1_4  1
    s_31_0    spines_of_phases_31_0  -4
    s_31_0    purchases_0_4  1
    s_31_1    spines_of_phases_31_1  -13
    s_31_1    purchases_1_4  1
    s_32_0    spines_of_phases_32_0  -3
    s_32_0    purchases_0_4  1
    s_32_1    spines_of_phases_32_1  -11
    s_32_1    purchases_1_4  1
    s_33_0    spines_of_phases_33_0  -4
    s_33_0    purchases_0_4  1
    s_33_1    spines_of_phases_33_1  -15
    s_33_1    purchases_1_4  1
    s_34_0    spines_of_phases_34_0  -3
    s_34_0    purchases_0_4  1
    s_34_1    spines_of_phases_34_1  -12
    s_34_1    purchases_1_4  1
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     one_line  1
BOUNDS
 UP BOUND     x_0_0     128
 UP BOUND     x_0_1     128
 UP BOUND     x_0_2     80
 UP BOUND     x_0_3     768
 UP BOUND     x_0_4     24
 UP BOUND     x_0_5     128
 UP BOUND     x_1_0     128
 UP BOUND     x_1_1     128
 UP BOUND     x_1_2     80
 UP BOUND     x_1_3     768
 UP BOUND     x_1_4     24
 UP BOUND     x_1_5     128
 FX BOUND     u_0_0     0
 UI BOUND     u_0_1     4
 FX BOUND     u_1_0     0
 UI BOUND     u_1_1     2
 FX BOUND     u_2_0     0
 UI BOUND     u_2_1     3
 FX BOUND     u_3_0     0
 UI BOUND     u_3_1     2
 FX BOUND     u_4_0     0
 FX BOUND     u_4_1     0
 UI BOUND     u_5_0     4
 UI BOUND     u_5_1     8
 UI BOUND     u_6_0     4
 UI BOUND     u_6_1     6
 UI BOUND     u_7_0     4
 UI BOUND     u_7_1     4
 UI BOUND     u_8_0     4
 UI BOUND     u_8_1     4
 UI BOUND     u_9_0     4
 UI BOUND     u_9_1     4
 UI BOUND     u_10_0    4
 UI BOUND     u_10_1    4
 UI BOUND     u_11_0    3
 UI BOUND     u_11_1    3
 UI BOUND     u_12_0    3
 UI BOUND     u_12_1    3
 UI BOUND     u_13_0    3
 UI BOUND     u_13_1    3
 UI BOUND     u_14_0    2
 UI BOUND     u_14_1    2
 UI BOUND     u_15_0    2
 UI BOUND     u_15_1    2
 UI BOUND     u_16_0    2
 UI BOUND     u_16_1    2
 UI BOUND     u_17_0    8
 UI BOUND     u_17_1    8
 FX BOUND     u_18_0    0
 FX BOUND     u_18_1    0
 FX BOUND     u_19_0    0
 FX BOUND     u_19_1    0
 UI BOUND     u_20_0    2
 UI BOUND     u_20_1    8
 UI BOUND     u_21_0    4
 UI BOUND     u_21_1    4
 UI BOUND     u_22_0    4
 UI BOUND     u_22_1    4
 UI BOUND     u_23_0    4
 UI BOUND     u_23_1    4
 UI BOUND     u_24_0    3
 UI BOUND     u_24_1    3
 UI BOUND     u_25_0    3
 UI BOUND     u_25_1    3
 UI BOUND     u_26_0    3
 UI BOUND     u_26_1    3
 UI BOUND     u_27_0    2
 UI BOUND     u_27_1    2
 UI BOUND     u_28_0    2
 UI BOUND     u_28_1    2
 UI BOUND     u_29_0    2
 UI BOUND     u_29_1    2
 UI BOUND     u_30_0    8
 UI BOUND     u_30_1    8
 UI BOUND     u_31_0    6
 UI BOUND     u_31_1    6
 UI BOUND     u_32_0    4
 UI BOUND     u_32_1    4
 UI BOUND     u_33_0    7
 UI BOUND     u_33_1    7
 UI BOUND     u_34_0    5
 UI BOUND     u_34_1    5
 BV BOUND     y_0     
 BV BOUND     y_1     
 BV BOUND     y_2     
 BV BOUND     y_3     
 BV BOUND     y_4     
 BV BOUND     y_5     
 BV BOUND     y_6     
 BV BOUND     y_7     
 BV BOUND     y_8     
 BV BOUND     y_9     
 BV BOUND     y_10    
 BV BOUND     y_11    
 BV BOUND     y_12    
 BV BOUND     y_13    
 BV BOUND     y_14    
 BV BOUND     y_15    
 BV BOUND     y_16    
 BV BOUND     y_17    
 BV BOUND     y_18    
 BV BOUND     y_19    
 BV BOUND     y_20    
 BV BOUND     y_21    
 BV BOUND     y_22    
 BV BOUND     y_23    
 BV BOUND     y_24    
 BV BOUND     y_25    
 BV BOUND     y_26    
 BV BOUND     y_27    
 BV BOUND     y_28    
 BV BOUND     y_29    
 BV BOUND     y_30    
 BV BOUND     y_31    
 BV BOUND     y_32    
 BV BOUND     y_33    
 BV BOUND     y_34    
 FX BOUND     s_0_0     0
 UI BOUND     s_0_1     2
 FX BOUND     s_1_0     0
 BV BOUND     s_1_1   
 FX BOUND     s_2_0     0
 UI BOUND     s_2_1     3
 FX BOUND     s_3_0     0
 BV BOUND     s_3_1   
 FX BOUND     s_4_0     0
 FX BOUND     s_4_1     0
 UI BOUND     s_5_0     4
 UI BOUND     s_5_1     8
 UI BOUND     s_6_0     4
 UI BOUND     s_6_1     6
 UI BOUND     s_7_0     4
 UI BOUND     s_7_1     4
 FX BOUND     s_8_0     0
 FX BOUND     s_8_1     0
 FX BOUND     s_9_0     0
 FX BOUND     s_9_1     0
 FX BOUND     s_10_0    0
 FX BOUND     s_10_1    0
 FX BOUND     s_11_0    0
 FX BOUND     s_11_1    0
 FX BOUND     s_12_0    0
 FX BOUND     s_12_1    0
 FX BOUND     s_13_0    0
 FX BOUND     s_13_1    0
 FX BOUND     s_14_0    0
 FX BOUND     s_14_1    0
 FX BOUND     s_15_0    0
 FX BOUND     s_15_1    0
 UI BOUND     s_16_0    2
 FX BOUND     s_16_1    0
 UI BOUND     s_17_0    8
 UI BOUND     s_17_1    8
 FX BOUND     s_18_0    0
 FX BOUND     s_18_1    0
 FX BOUND     s_19_0    0
 FX BOUND     s_19_1    0
 UI BOUND     s_20_0    2
 UI BOUND     s_20_1    8
 FX BOUND     s_21_0    0
 FX BOUND     s_21_1    0
 FX BOUND     s_22_0    0
 FX BOUND     s_22_1    0
 FX BOUND     s_23_0    0
 FX BOUND     s_23_1    0
 FX BOUND     s_24_0    0
 FX BOUND     s_24_1    0
 FX BOUND     s_25_0    0
 FX BOUND     s_25_1    0
 FX BOUND     s_26_0    0
 FX BOUND     s_26_1    0
 FX BOUND     s_27_0    0
 FX BOUND     s_27_1    0
 FX BOUND     s_28_0    0
 FX BOUND     s_28_1    0
 UI BOUND     s_29_0    2
 FX BOUND     s_29_1    0
 UI BOUND     s_30_0    8
 UI BOUND     s_30_1    8
 UI BOUND     s_31_0    6
 UI BOUND     s_31_1    6
 UI BOUND     s_32_0    4
 UI BOUND     s_32_1    4
 UI BOUND     s_33_0    7
 UI BOUND     s_33_1    7
 UI BOUND     s_34_0    5
 UI BOUND     s_34_1    5
ENDATA
