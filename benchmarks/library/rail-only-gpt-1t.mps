* rail-only-gpt-1t (430982c0bf31fe71f9b1dc49361c5a089d7f713a0649e06bb85d4bb061c877cb), formulation 'uplinks'
* minimizes capex in USD; the plan: optimal, value 375209984.0
* y_f builds family f, u_f: uplinks of a leaf, s_f: spines of a plane, z_c uses column c
* y_0: 256 x h100-hb128 (128 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_1: 256 x h100-hb128 (128 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 12 to 21 uplinks
* y_2: 256 x h100-hb128 (128 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 22 to 22 uplinks
* y_3: 256 x h100-hb128 (128 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_4: 256 x h100-hb128 (128 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_5: 256 x h100-hb128 (128 active), 2-tier rail-only of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_6: 256 x h100-hb128 (128 active), 2-tier rail-only of 128x400g, 1 x cx7-400g; 22 to 42 uplinks
* y_7: 256 x h100-hb128 (128 active), 2-tier rail-only of 128x400g, 1 x cx7-400g; 43 to 43 uplinks
* y_8: 256 x h100-hb128 (128 active), 2-tier rail-only of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_9: 256 x h100-hb128 (128 active), 2-tier rail-only of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_10: 256 x h100-hb128 (128 active), 1-tier rail-only of 256x400g, 1 x cx7-400g; 0 to 0 uplinks
* y_11: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_12: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_13: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_14: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_15: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_16: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_17: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_18: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_19: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_20: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_21: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_22: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_23: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_24: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_25: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_26: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_27: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_28: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_29: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_30: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_31: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_32: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_33: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_34: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_35: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_36: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_37: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_38: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_39: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_40: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_41: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_42: 256 x h100-hb128 (128 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_43: 256 x h100-hb128 (128 active), 2-tier rail-optimized of 256x400g, 1 x cx7-400g; 32 to 128 uplinks
* y_44: 256 x h100-hb128 (128 active), 2-tier rail-optimized of 256x400g, 1 x cx7-400g; 43 to 86 uplinks
* y_45: 256 x h100-hb128 (128 active), 2-tier rail-optimized of 256x400g, 1 x cx7-400g; 48 to 64 uplinks
* y_46: 256 x h100-hb128 (128 active), 2-tier rail-optimized of 256x400g, 1 x cx7-400g; 51 to 52 uplinks
* y_47: 256 x h100-hb128 (128 active), 3-tier clos of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_48: 256 x h100-hb128 (128 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_49: 256 x h100-hb128 (128 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_50: 256 x h100-hb128 (128 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_51: 256 x h100-hb128 (128 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_52: 256 x h100-hb128 (128 active), 2-tier clos of 256x400g, 1 x cx7-400g; 32 to 128 uplinks
* y_53: 128 x gh200-256 (256 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_54: 128 x gh200-256 (256 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_55: 128 x gh200-256 (256 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_56: 128 x gh200-256 (256 active), 2-tier rail-only of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_57: 128 x gh200-256 (256 active), 1-tier rail-only of 128x400g, 1 x cx7-400g; 0 to 0 uplinks
* y_58: 128 x gh200-256 (256 active), 1-tier rail-only of 256x400g, 1 x cx7-400g; 0 to 0 uplinks
* y_59: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_60: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_61: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_62: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_63: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_64: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_65: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_66: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_67: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_68: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_69: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_70: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 12 to 16 uplinks
* y_71: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_72: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_73: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_74: 128 x gh200-256 (256 active), 3-tier rail-optimized of 64x400g, 1 x cx7-400g; 13 to 13 uplinks
* y_75: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_76: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_77: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_78: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_79: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_80: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_81: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_82: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 22 to 43 uplinks
* y_83: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_84: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_85: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_86: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 24 to 32 uplinks
* y_87: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_88: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_89: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_90: 128 x gh200-256 (256 active), 3-tier rail-optimized of 128x400g, 1 x cx7-400g; 26 to 26 uplinks
* y_91: 128 x gh200-256 (256 active), 2-tier rail-optimized of 256x400g, 1 x cx7-400g; 32 to 128 uplinks
* y_92: 128 x gh200-256 (256 active), 3-tier clos of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_93: 128 x gh200-256 (256 active), 3-tier clos of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_94: 128 x gh200-256 (256 active), 3-tier clos of 64x400g, 1 x cx7-400g; 8 to 32 uplinks
* y_95: 128 x gh200-256 (256 active), 3-tier clos of 64x400g, 1 x cx7-400g; 11 to 22 uplinks
* y_96: 128 x gh200-256 (256 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_97: 128 x gh200-256 (256 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_98: 128 x gh200-256 (256 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_99: 128 x gh200-256 (256 active), 3-tier clos of 128x400g, 1 x cx7-400g; 16 to 64 uplinks
* y_100: 128 x gh200-256 (256 active), 2-tier clos of 256x400g, 1 x cx7-400g; 32 to 128 uplinks
* z_0: 'pre-training' on families of context 0, from 7 uplinks
* z_1: 'pre-training' on families of context 1, from 7 uplinks
* z_2: 'pre-training' on families of context 2, from 8 uplinks
* z_3: 'pre-training' on families of context 3, from 7 uplinks
* z_4: 'pre-training' on families of context 4, from 7 uplinks
* z_5: 'pre-training' on families of context 5, from 7 uplinks
* z_6: 'pre-training' on families of context 6, from 7 uplinks
* z_7: 'pre-training' on families of context 7, from 7 uplinks
* z_8: 'pre-training' on families of context 8, from 7 uplinks
* z_9: 'pre-training' on families of context 9, from 7 uplinks
* z_10: 'pre-training' on families of context 10, from 0 uplinks
* z_11: 'pre-training' on families of context 11, from 7 uplinks
* z_12: 'pre-training' on families of context 12, from 7 uplinks
* z_13: 'pre-training' on families of context 13, from 7 uplinks
* z_14: 'pre-training' on families of context 14, from 7 uplinks
* z_15: 'pre-training' on families of context 15, from 7 uplinks
* z_16: 'pre-training' on families of context 16, from 7 uplinks
* z_17: 'pre-training' on families of context 17, from 7 uplinks
* z_18: 'pre-training' on families of context 18, from 7 uplinks
* z_19: 'pre-training' on families of context 19, from 7 uplinks
* z_20: 'pre-training' on families of context 20, from 7 uplinks
* z_21: 'pre-training' on families of context 21, from 7 uplinks
* z_22: 'pre-training' on families of context 22, from 7 uplinks
* z_23: 'pre-training' on families of context 23, from 7 uplinks
* z_24: 'pre-training' on families of context 24, from 7 uplinks
* z_25: 'pre-training' on families of context 25, from 7 uplinks
* z_26: 'pre-training' on families of context 26, from 7 uplinks
* z_27: 'pre-training' on families of context 27, from 7 uplinks
* z_28: 'pre-training' on families of context 28, from 7 uplinks
* z_29: 'pre-training' on families of context 29, from 7 uplinks
* z_30: 'pre-training' on families of context 30, from 7 uplinks
* z_31: 'pre-training' on families of context 31, from 7 uplinks
* z_32: 'pre-training' on families of context 32, from 7 uplinks
* z_33: 'pre-training' on families of context 33, from 7 uplinks
* z_34: 'pre-training' on families of context 34, from 7 uplinks
* z_35: 'pre-training' on families of context 35, from 7 uplinks
* z_36: 'pre-training' on families of context 36, from 7 uplinks
* z_37: 'pre-training' on families of context 37, from 7 uplinks
* z_38: 'pre-training' on families of context 38, from 28 uplinks
* z_39: 'pre-training' on families of context 39, from 55 uplinks
* z_40: 'pre-training' on families of context 40, from 55 uplinks
* z_41: 'pre-training' on families of context 41, from 55 uplinks
* z_42: 'pre-training' on families of context 42, from 55 uplinks
* z_43: 'pre-training' on families of context 43, from 110 uplinks
* z_44: 'pre-training' on families of context 44, from 4 uplinks
* z_45: 'pre-training' on families of context 45, from 4 uplinks
* z_46: 'pre-training' on families of context 46, from 4 uplinks
* z_47: 'pre-training' on families of context 47, from 4 uplinks
* z_48: 'pre-training' on families of context 48, from 0 uplinks
* z_49: 'pre-training' on families of context 49, from 4 uplinks
* z_50: 'pre-training' on families of context 50, from 4 uplinks
* z_51: 'pre-training' on families of context 51, from 4 uplinks
* z_52: 'pre-training' on families of context 52, from 4 uplinks
* z_53: 'pre-training' on families of context 53, from 4 uplinks
* z_54: 'pre-training' on families of context 54, from 4 uplinks
* z_55: 'pre-training' on families of context 55, from 4 uplinks
* z_56: 'pre-training' on families of context 56, from 4 uplinks
* z_57: 'pre-training' on families of context 57, from 4 uplinks
* z_58: 'pre-training' on families of context 58, from 4 uplinks
* z_59: 'pre-training' on families of context 59, from 4 uplinks
* z_60: 'pre-training' on families of context 60, from 4 uplinks
* z_61: 'pre-training' on families of context 61, from 4 uplinks
* z_62: 'pre-training' on families of context 62, from 4 uplinks
* z_63: 'pre-training' on families of context 63, from 4 uplinks
* z_64: 'pre-training' on families of context 64, from 4 uplinks
* z_65: 'pre-training' on families of context 65, from 4 uplinks
* z_66: 'pre-training' on families of context 66, from 4 uplinks
* z_67: 'pre-training' on families of context 67, from 17 uplinks
* z_68: 'pre-training' on families of context 68, from 22 uplinks
* z_69: 'pre-training' on families of context 69, from 29 uplinks
* z_70: 'pre-training' on families of context 70, from 22 uplinks
* z_71: 'pre-training' on families of context 71, from 34 uplinks
* z_72: 'pre-training' on families of context 72, from 34 uplinks
* z_73: 'pre-training' on families of context 73, from 34 uplinks
* z_74: 'pre-training' on families of context 74, from 39 uplinks
* z_75: 'pre-training' on families of context 75, from 67 uplinks
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
 L  least_uplinks_6
 L  least_uplinks_7
 L  least_uplinks_8
 L  least_uplinks_9
 L  least_uplinks_10
 L  least_uplinks_11
 L  least_uplinks_12
 L  least_uplinks_13
 L  least_uplinks_14
 L  least_uplinks_15
 L  least_uplinks_16
 L  least_uplinks_17
 L  least_uplinks_18
 L  least_uplinks_19
 L  least_uplinks_20
 L  least_uplinks_21
 L  least_uplinks_22
 L  least_uplinks_23
 L  least_uplinks_24
 L  least_uplinks_25
 L  least_uplinks_26
 L  least_uplinks_27
 L  least_uplinks_28
 L  least_uplinks_29
 L  least_uplinks_30
 L  least_uplinks_31
 L  least_uplinks_32
 L  least_uplinks_33
 L  least_uplinks_34
 L  least_uplinks_35
 L  least_uplinks_36
 L  least_uplinks_37
 L  least_uplinks_38
 L  least_uplinks_39
 L  least_uplinks_40
 L  least_uplinks_41
 L  least_uplinks_42
 L  least_uplinks_43
 L  least_uplinks_44
 L  least_uplinks_45
 L  least_uplinks_46
 L  least_uplinks_47
 L  least_uplinks_48
 L  least_uplinks_49
 L  least_uplinks_50
 L  least_uplinks_51
 L  least_uplinks_52
 L  least_uplinks_53
 L  least_uplinks_54
 L  least_uplinks_55
 L  least_uplinks_56
 L  least_uplinks_57
 L  least_uplinks_58
 L  least_uplinks_59
 L  least_uplinks_60
 L  least_uplinks_61
 L  least_uplinks_62
 L  least_uplinks_63
 L  least_uplinks_64
 L  least_uplinks_65
 L  least_uplinks_66
 L  least_uplinks_67
 L  least_uplinks_68
 L  least_uplinks_69
 L  least_uplinks_70
 L  least_uplinks_71
 L  least_uplinks_72
 L  least_uplinks_73
 L  least_uplinks_74
 L  least_uplinks_75
 L  least_uplinks_76
 L  least_uplinks_77
 L  least_uplinks_78
 L  least_uplinks_79
 L  least_uplinks_80
 L  least_uplinks_81
 L  least_uplinks_82
 L  least_uplinks_83
 L  least_uplinks_84
 L  least_uplinks_85
 L  least_uplinks_86
 L  least_uplinks_87
 L  least_uplinks_88
 L  least_uplinks_89
 L  least_uplinks_90
 L  least_uplinks_91
 L  least_uplinks_92
 L  least_uplinks_93
 L  least_uplinks_94
 L  least_uplinks_95
 L  least_uplinks_96
 L  least_uplinks_97
 L  least_uplinks_98
 L  least_uplinks_99
 L  least_uplinks_100
 L  most_uplinks_0
 L  most_uplinks_1
 L  most_uplinks_2
 L  most_uplinks_3
 L  most_uplinks_4
 L  most_uplinks_5
 L  most_uplinks_6
 L  most_uplinks_7
 L  most_uplinks_8
 L  most_uplinks_9
 L  most_uplinks_10
 L  most_uplinks_11
 L  most_uplinks_12
 L  most_uplinks_13
 L  most_uplinks_14
 L  most_uplinks_15
 L  most_uplinks_16
 L  most_uplinks_17
 L  most_uplinks_18
 L  most_uplinks_19
 L  most_uplinks_20
 L  most_uplinks_21
 L  most_uplinks_22
 L  most_uplinks_23
 L  most_uplinks_24
 L  most_uplinks_25
 L  most_uplinks_26
 L  most_uplinks_27
 L  most_uplinks_28
 L  most_uplinks_29
 L  most_uplinks_30
 L  most_uplinks_31
 L  most_uplinks_32
 L  most_uplinks_33
 L  most_uplinks_34
 L  most_uplinks_35
 L  most_uplinks_36
 L  most_uplinks_37
 L  most_uplinks_38
 L  most_uplinks_39
 L  most_uplinks_40
 L  most_uplinks_41
 L  most_uplinks_42
 L  most_uplinks_43
 L  most_uplinks_44
 L  most_uplinks_45
 L  most_uplinks_46
 L  most_uplinks_47
 L  most_uplinks_48
 L  most_uplinks_49
 L  most_uplinks_50
 L  most_uplinks_51
 L  most_uplinks_52
 L  most_uplinks_53
 L  most_uplinks_54
 L  most_uplinks_55
 L  most_uplinks_56
 L  most_uplinks_57
 L  most_uplinks_58
 L  most_uplinks_59
 L  most_uplinks_60
 L  most_uplinks_61
 L  most_uplinks_62
 L  most_uplinks_63
 L  most_uplinks_64
 L  most_uplinks_65
 L  most_uplinks_66
 L  most_uplinks_67
 L  most_uplinks_68
 L  most_uplinks_69
 L  most_uplinks_70
 L  most_uplinks_71
 L  most_uplinks_72
 L  most_uplinks_73
 L  most_uplinks_74
 L  most_uplinks_75
 L  most_uplinks_76
 L  most_uplinks_77
 L  most_uplinks_78
 L  most_uplinks_79
 L  most_uplinks_80
 L  most_uplinks_81
 L  most_uplinks_82
 L  most_uplinks_83
 L  most_uplinks_84
 L  most_uplinks_85
 L  most_uplinks_86
 L  most_uplinks_87
 L  most_uplinks_88
 L  most_uplinks_89
 L  most_uplinks_90
 L  most_uplinks_91
 L  most_uplinks_92
 L  most_uplinks_93
 L  most_uplinks_94
 L  most_uplinks_95
 L  most_uplinks_96
 L  most_uplinks_97
 L  most_uplinks_98
 L  most_uplinks_99
 L  most_uplinks_100
 L  spine_ports_0
 L  spine_ports_1
 L  spine_ports_2
 L  spine_ports_3
 L  spine_ports_4
 L  spine_ports_5
 L  spine_ports_6
 L  spine_ports_7
 L  spine_ports_8
 L  spine_ports_9
 E  spine_ports_10
 E  spine_ports_11
 E  spine_ports_12
 E  spine_ports_13
 E  spine_ports_14
 E  spine_ports_15
 E  spine_ports_16
 E  spine_ports_17
 E  spine_ports_18
 E  spine_ports_19
 E  spine_ports_20
 E  spine_ports_21
 E  spine_ports_22
 E  spine_ports_23
 E  spine_ports_24
 E  spine_ports_25
 E  spine_ports_26
 E  spine_ports_27
 E  spine_ports_28
 E  spine_ports_29
 E  spine_ports_30
 E  spine_ports_31
 E  spine_ports_32
 E  spine_ports_33
 E  spine_ports_34
 E  spine_ports_35
 E  spine_ports_36
 E  spine_ports_37
 E  spine_ports_38
 E  spine_ports_39
 E  spine_ports_40
 E  spine_ports_41
 E  spine_ports_42
 L  spine_ports_43
 L  spine_ports_44
 L  spine_ports_45
 L  spine_ports_46
 E  spine_ports_47
 E  spine_ports_48
 E  spine_ports_49
 E  spine_ports_50
 E  spine_ports_51
 L  spine_ports_52
 L  spine_ports_53
 L  spine_ports_54
 L  spine_ports_55
 L  spine_ports_56
 E  spine_ports_57
 E  spine_ports_58
 E  spine_ports_59
 E  spine_ports_60
 E  spine_ports_61
 E  spine_ports_62
 E  spine_ports_63
 E  spine_ports_64
 E  spine_ports_65
 E  spine_ports_66
 E  spine_ports_67
 E  spine_ports_68
 E  spine_ports_69
 E  spine_ports_70
 E  spine_ports_71
 E  spine_ports_72
 E  spine_ports_73
 E  spine_ports_74
 E  spine_ports_75
 E  spine_ports_76
 E  spine_ports_77
 E  spine_ports_78
 E  spine_ports_79
 E  spine_ports_80
 E  spine_ports_81
 E  spine_ports_82
 E  spine_ports_83
 E  spine_ports_84
 E  spine_ports_85
 E  spine_ports_86
 E  spine_ports_87
 E  spine_ports_88
 E  spine_ports_89
 E  spine_ports_90
 L  spine_ports_91
 E  spine_ports_92
 E  spine_ports_93
 E  spine_ports_94
 E  spine_ports_95
 E  spine_ports_96
 E  spine_ports_97
 E  spine_ports_98
 E  spine_ports_99
 L  spine_ports_100
 E  mapping_0_0
 E  mapping_0_1
 E  mapping_0_2
 E  mapping_0_3
 E  mapping_0_4
 E  mapping_0_5
 E  mapping_0_6
 E  mapping_0_7
 E  mapping_0_8
 E  mapping_0_9
 E  mapping_0_10
 E  mapping_0_11
 E  mapping_0_12
 E  mapping_0_13
 E  mapping_0_14
 E  mapping_0_15
 E  mapping_0_16
 E  mapping_0_17
 E  mapping_0_18
 E  mapping_0_19
 E  mapping_0_20
 E  mapping_0_21
 E  mapping_0_22
 E  mapping_0_23
 E  mapping_0_24
 E  mapping_0_25
 E  mapping_0_26
 E  mapping_0_27
 E  mapping_0_28
 E  mapping_0_29
 E  mapping_0_30
 E  mapping_0_31
 E  mapping_0_32
 E  mapping_0_33
 E  mapping_0_34
 E  mapping_0_35
 E  mapping_0_36
 E  mapping_0_37
 E  mapping_0_38
 E  mapping_0_39
 E  mapping_0_40
 E  mapping_0_41
 E  mapping_0_42
 E  mapping_0_43
 E  mapping_0_44
 E  mapping_0_45
 E  mapping_0_46
 E  mapping_0_47
 E  mapping_0_48
 E  mapping_0_49
 E  mapping_0_50
 E  mapping_0_51
 E  mapping_0_52
 E  mapping_0_53
 E  mapping_0_54
 E  mapping_0_55
 E  mapping_0_56
 E  mapping_0_57
 E  mapping_0_58
 E  mapping_0_59
 E  mapping_0_60
 E  mapping_0_61
 E  mapping_0_62
 E  mapping_0_63
 E  mapping_0_64
 E  mapping_0_65
 E  mapping_0_66
 E  mapping_0_67
 E  mapping_0_68
 E  mapping_0_69
 E  mapping_0_70
 E  mapping_0_71
 E  mapping_0_72
 E  mapping_0_73
 E  mapping_0_74
 E  mapping_0_75
 L  uplinks_demanded_0_0
 L  uplinks_demanded_0_1
 L  uplinks_demanded_0_2
 L  uplinks_demanded_0_3
 L  uplinks_demanded_0_4
 L  uplinks_demanded_0_5
 L  uplinks_demanded_0_6
 L  uplinks_demanded_0_7
 L  uplinks_demanded_0_8
 L  uplinks_demanded_0_9
 L  uplinks_demanded_0_10
 L  uplinks_demanded_0_11
 L  uplinks_demanded_0_12
 L  uplinks_demanded_0_13
 L  uplinks_demanded_0_14
 L  uplinks_demanded_0_15
 L  uplinks_demanded_0_16
 L  uplinks_demanded_0_17
 L  uplinks_demanded_0_18
 L  uplinks_demanded_0_19
 L  uplinks_demanded_0_20
 L  uplinks_demanded_0_21
 L  uplinks_demanded_0_22
 L  uplinks_demanded_0_23
 L  uplinks_demanded_0_24
 L  uplinks_demanded_0_25
 L  uplinks_demanded_0_26
 L  uplinks_demanded_0_27
 L  uplinks_demanded_0_28
 L  uplinks_demanded_0_29
 L  uplinks_demanded_0_30
 L  uplinks_demanded_0_31
 L  uplinks_demanded_0_32
 L  uplinks_demanded_0_33
 L  uplinks_demanded_0_34
 L  uplinks_demanded_0_35
 L  uplinks_demanded_0_36
 L  uplinks_demanded_0_37
 L  uplinks_demanded_0_38
 L  uplinks_demanded_0_39
 L  uplinks_demanded_0_40
 L  uplinks_demanded_0_41
 L  uplinks_demanded_0_42
 L  uplinks_demanded_0_43
 L  uplinks_demanded_0_44
 L  uplinks_demanded_0_45
 L  uplinks_demanded_0_46
 L  uplinks_demanded_0_47
 L  uplinks_demanded_0_48
 L  uplinks_demanded_0_49
 L  uplinks_demanded_0_50
 L  uplinks_demanded_0_51
 L  uplinks_demanded_0_52
 L  uplinks_demanded_0_53
 L  uplinks_demanded_0_54
 L  uplinks_demanded_0_55
 L  uplinks_demanded_0_56
 L  uplinks_demanded_0_57
 L  uplinks_demanded_0_58
 L  uplinks_demanded_0_59
 L  uplinks_demanded_0_60
 L  uplinks_demanded_0_61
 L  uplinks_demanded_0_62
 L  uplinks_demanded_0_63
 L  uplinks_demanded_0_64
 L  uplinks_demanded_0_65
 L  uplinks_demanded_0_66
 L  uplinks_demanded_0_67
 L  uplinks_demanded_0_68
 L  uplinks_demanded_0_69
 L  uplinks_demanded_0_70
 L  uplinks_demanded_0_71
 L  uplinks_demanded_0_72
 L  uplinks_demanded_0_73
 L  uplinks_demanded_0_74
 L  uplinks_demanded_0_75
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    y_0       Obj       397950976
    y_0       one_family  1
    y_0       least_uplinks_0  8
    y_0       most_uplinks_0  -32
    y_0       mapping_0_0  -1
    y_1       Obj       392265728
    y_1       one_family  1
    y_1       least_uplinks_1  12
    y_1       most_uplinks_1  -21
    y_1       mapping_0_1  -1
    y_2       Obj       392265728
    y_2       one_family  1
    y_2       least_uplinks_2  22
    y_2       most_uplinks_2  -22
    y_2       mapping_0_2  -1
    y_3       Obj       386580480
    y_3       one_family  1
    y_3       least_uplinks_3  12
    y_3       most_uplinks_3  -16
    y_3       mapping_0_3  -1
    y_4       Obj       386580480
    y_4       one_family  1
    y_4       least_uplinks_4  13
    y_4       most_uplinks_4  -13
    y_4       mapping_0_4  -1
    y_5       Obj       397950976
    y_5       one_family  1
    y_5       least_uplinks_5  16
    y_5       most_uplinks_5  -64
    y_5       mapping_0_5  -1
    y_6       Obj       397950976
    y_6       one_family  1
    y_6       least_uplinks_6  22
    y_6       most_uplinks_6  -42
    y_6       mapping_0_6  -1
    y_7       Obj       397950976
    y_7       one_family  1
    y_7       least_uplinks_7  43
    y_7       most_uplinks_7  -43
    y_7       mapping_0_7  -1
    y_8       Obj       386580480
    y_8       one_family  1
    y_8       least_uplinks_8  24
    y_8       most_uplinks_8  -32
    y_8       mapping_0_8  -1
    y_9       Obj       386580480
    y_9       one_family  1
    y_9       least_uplinks_9  26
    y_9       most_uplinks_9  -26
    y_9       mapping_0_9  -1
    y_10      Obj       375209984
    y_10      one_family  1
    y_10      mapping_0_10  -1
    y_11      Obj       397950976
    y_11      one_family  1
    y_11      least_uplinks_11  8
    y_11      most_uplinks_11  -32
    y_11      mapping_0_11  -1
    y_12      Obj       397950976
    y_12      one_family  1
    y_12      least_uplinks_12  8
    y_12      most_uplinks_12  -32
    y_12      mapping_0_12  -1
    y_13      Obj       397950976
    y_13      one_family  1
    y_13      least_uplinks_13  8
    y_13      most_uplinks_13  -32
    y_13      mapping_0_11  -1
    y_14      Obj       397950976
    y_14      one_family  1
    y_14      least_uplinks_14  8
    y_14      most_uplinks_14  -32
    y_14      mapping_0_13  -1
    y_15      Obj       392265728
    y_15      one_family  1
    y_15      least_uplinks_15  11
    y_15      most_uplinks_15  -22
    y_15      mapping_0_14  -1
    y_16      Obj       392265728
    y_16      one_family  1
    y_16      least_uplinks_16  11
    y_16      most_uplinks_16  -22
    y_16      mapping_0_15  -1
    y_17      Obj       392265728
    y_17      one_family  1
    y_17      least_uplinks_17  11
    y_17      most_uplinks_17  -22
    y_17      mapping_0_16  -1
    y_18      Obj       392265728
    y_18      one_family  1
    y_18      least_uplinks_18  11
    y_18      most_uplinks_18  -22
    y_18      mapping_0_17  -1
    y_19      Obj       386580480
    y_19      one_family  1
    y_19      least_uplinks_19  12
    y_19      most_uplinks_19  -16
    y_19      mapping_0_18  -1
    y_20      Obj       386580480
    y_20      one_family  1
    y_20      least_uplinks_20  12
    y_20      most_uplinks_20  -16
    y_20      mapping_0_19  -1
    y_21      Obj       386580480
    y_21      one_family  1
    y_21      least_uplinks_21  12
    y_21      most_uplinks_21  -16
    y_21      mapping_0_19  -1
    y_22      Obj       386580480
    y_22      one_family  1
    y_22      least_uplinks_22  12
    y_22      most_uplinks_22  -16
    y_22      mapping_0_20  -1
    y_23      Obj       386580480
    y_23      one_family  1
    y_23      least_uplinks_23  13
    y_23      most_uplinks_23  -13
    y_23      mapping_0_21  -1
    y_24      Obj       386580480
    y_24      one_family  1
    y_24      least_uplinks_24  13
    y_24      most_uplinks_24  -13
    y_24      mapping_0_4  -1
    y_25      Obj       386580480
    y_25      one_family  1
    y_25      least_uplinks_25  13
    y_25      most_uplinks_25  -13
    y_25      mapping_0_4  -1
    y_26      Obj       386580480
    y_26      one_family  1
    y_26      least_uplinks_26  13
    y_26      most_uplinks_26  -13
    y_26      mapping_0_22  -1
    y_27      Obj       397950976
    y_27      one_family  1
    y_27      least_uplinks_27  16
    y_27      most_uplinks_27  -64
    y_27      mapping_0_23  -1
    y_28      Obj       397950976
    y_28      one_family  1
    y_28      least_uplinks_28  16
    y_28      most_uplinks_28  -64
    y_28      mapping_0_24  -1
    y_29      Obj       397950976
    y_29      one_family  1
    y_29      least_uplinks_29  16
    y_29      most_uplinks_29  -64
    y_29      mapping_0_23  -1
    y_30      Obj       397950976
    y_30      one_family  1
    y_30      least_uplinks_30  16
    y_30      most_uplinks_30  -64
    y_30      mapping_0_25  -1
    y_31      Obj       397950976
    y_31      one_family  1
    y_31      least_uplinks_31  22
    y_31      most_uplinks_31  -43
    y_31      mapping_0_7  -1
    y_32      Obj       397950976
    y_32      one_family  1
    y_32      least_uplinks_32  22
    y_32      most_uplinks_32  -43
    y_32      mapping_0_26  -1
    y_33      Obj       397950976
    y_33      one_family  1
    y_33      least_uplinks_33  22
    y_33      most_uplinks_33  -43
    y_33      mapping_0_7  -1
    y_34      Obj       397950976
    y_34      one_family  1
    y_34      least_uplinks_34  22
    y_34      most_uplinks_34  -43
    y_34      mapping_0_27  -1
    y_35      Obj       386580480
    y_35      one_family  1
    y_35      least_uplinks_35  24
    y_35      most_uplinks_35  -32
    y_35      mapping_0_28  -1
    y_36      Obj       386580480
    y_36      one_family  1
    y_36      least_uplinks_36  24
    y_36      most_uplinks_36  -32
    y_36      mapping_0_29  -1
    y_37      Obj       386580480
    y_37      one_family  1
    y_37      least_uplinks_37  24
    y_37      most_uplinks_37  -32
    y_37      mapping_0_30  -1
    y_38      Obj       386580480
    y_38      one_family  1
    y_38      least_uplinks_38  24
    y_38      most_uplinks_38  -32
    y_38      mapping_0_30  -1
    y_39      Obj       386580480
    y_39      one_family  1
    y_39      least_uplinks_39  26
    y_39      most_uplinks_39  -26
    y_39      mapping_0_31  -1
    y_40      Obj       386580480
    y_40      one_family  1
    y_40      least_uplinks_40  26
    y_40      most_uplinks_40  -26
    y_40      mapping_0_32  -1
    y_41      Obj       386580480
    y_41      one_family  1
    y_41      least_uplinks_41  26
    y_41      most_uplinks_41  -26
    y_41      mapping_0_33  -1
    y_42      Obj       386580480
    y_42      one_family  1
    y_42      least_uplinks_42  26
    y_42      most_uplinks_42  -26
    y_42      mapping_0_33  -1
    y_43      Obj       397950976
    y_43      one_family  1
    y_43      least_uplinks_43  32
    y_43      most_uplinks_43  -128
    y_43      mapping_0_34  -1
    y_44      Obj       397950976
    y_44      one_family  1
    y_44      least_uplinks_44  43
    y_44      most_uplinks_44  -86
    y_44      mapping_0_35  -1
    y_45      Obj       397950976
    y_45      one_family  1
    y_45      least_uplinks_45  48
    y_45      most_uplinks_45  -64
    y_45      mapping_0_36  -1
    y_46      Obj       397950976
    y_46      one_family  1
    y_46      least_uplinks_46  51
    y_46      most_uplinks_46  -52
    y_46      mapping_0_37  -1
    y_47      Obj       397950976
    y_47      one_family  1
    y_47      least_uplinks_47  8
    y_47      most_uplinks_47  -32
    y_47      mapping_0_38  -1
    y_48      Obj       397950976
    y_48      one_family  1
    y_48      least_uplinks_48  16
    y_48      most_uplinks_48  -64
    y_48      mapping_0_39  -1
    y_49      Obj       397950976
    y_49      one_family  1
    y_49      least_uplinks_49  16
    y_49      most_uplinks_49  -64
    y_49      mapping_0_40  -1
    y_50      Obj       397950976
    y_50      one_family  1
    y_50      least_uplinks_50  16
    y_50      most_uplinks_50  -64
    y_50      mapping_0_41  -1
    y_51      Obj       397950976
    y_51      one_family  1
    y_51      least_uplinks_51  16
    y_51      most_uplinks_51  -64
    y_51      mapping_0_42  -1
    y_52      Obj       397950976
    y_52      one_family  1
    y_52      least_uplinks_52  32
    y_52      most_uplinks_52  -128
    y_52      mapping_0_43  -1
    y_53      Obj       397950976
    y_53      one_family  1
    y_53      least_uplinks_53  8
    y_53      most_uplinks_53  -32
    y_53      mapping_0_44  -1
    y_54      Obj       397950976
    y_54      one_family  1
    y_54      least_uplinks_54  11
    y_54      most_uplinks_54  -22
    y_54      mapping_0_45  -1
    y_55      Obj       386580480
    y_55      one_family  1
    y_55      least_uplinks_55  12
    y_55      most_uplinks_55  -16
    y_55      mapping_0_46  -1
    y_56      Obj       386580480
    y_56      one_family  1
    y_56      least_uplinks_56  13
    y_56      most_uplinks_56  -13
    y_56      mapping_0_47  -1
    y_57      Obj       375209984
    y_57      one_family  1
    y_57      mapping_0_48  -1
    y_58      Obj       375209984
    y_58      one_family  1
    y_58      mapping_0_48  -1
    y_59      Obj       397950976
    y_59      one_family  1
    y_59      least_uplinks_59  8
    y_59      most_uplinks_59  -32
    y_59      mapping_0_49  -1
    y_60      Obj       397950976
    y_60      one_family  1
    y_60      least_uplinks_60  8
    y_60      most_uplinks_60  -32
    y_60      mapping_0_50  -1
    y_61      Obj       397950976
    y_61      one_family  1
    y_61      least_uplinks_61  8
    y_61      most_uplinks_61  -32
    y_61      mapping_0_49  -1
    y_62      Obj       397950976
    y_62      one_family  1
    y_62      least_uplinks_62  8
    y_62      most_uplinks_62  -32
    y_62      mapping_0_51  -1
    y_63      Obj       397950976
    y_63      one_family  1
    y_63      least_uplinks_63  11
    y_63      most_uplinks_63  -22
    y_63      mapping_0_52  -1
    y_64      Obj       397950976
    y_64      one_family  1
    y_64      least_uplinks_64  11
    y_64      most_uplinks_64  -22
    y_64      mapping_0_53  -1
    y_65      Obj       397950976
    y_65      one_family  1
    y_65      least_uplinks_65  11
    y_65      most_uplinks_65  -22
    y_65      mapping_0_52  -1
    y_66      Obj       397950976
    y_66      one_family  1
    y_66      least_uplinks_66  11
    y_66      most_uplinks_66  -22
    y_66      mapping_0_54  -1
    y_67      Obj       386580480
    y_67      one_family  1
    y_67      least_uplinks_67  12
    y_67      most_uplinks_67  -16
    y_67      mapping_0_55  -1
    y_68      Obj       386580480
    y_68      one_family  1
    y_68      least_uplinks_68  12
    y_68      most_uplinks_68  -16
    y_68      mapping_0_56  -1
    y_69      Obj       386580480
    y_69      one_family  1
    y_69      least_uplinks_69  12
    y_69      most_uplinks_69  -16
    y_69      mapping_0_56  -1
    y_70      Obj       386580480
    y_70      one_family  1
    y_70      least_uplinks_70  12
    y_70      most_uplinks_70  -16
    y_70      mapping_0_56  -1
    y_71      Obj       386580480
    y_71      one_family  1
    y_71      least_uplinks_71  13
    y_71      most_uplinks_71  -13
    y_71      mapping_0_57  -1
    y_72      Obj       386580480
    y_72      one_family  1
    y_72      least_uplinks_72  13
    y_72      most_uplinks_72  -13
    y_72      mapping_0_58  -1
    y_73      Obj       386580480
    y_73      one_family  1
    y_73      least_uplinks_73  13
    y_73      most_uplinks_73  -13
    y_73      mapping_0_58  -1
    y_74      Obj       386580480
    y_74      one_family  1
    y_74      least_uplinks_74  13
    y_74      most_uplinks_74  -13
    y_74      mapping_0_58  -1
    y_75      Obj       397950976
    y_75      one_family  1
    y_75      least_uplinks_75  16
    y_75      most_uplinks_75  -64
    y_75      mapping_0_59  -1
    y_76      Obj       397950976
    y_76      one_family  1
    y_76      least_uplinks_76  16
    y_76      most_uplinks_76  -64
    y_76      mapping_0_60  -1
    y_77      Obj       397950976
    y_77      one_family  1
    y_77      least_uplinks_77  16
    y_77      most_uplinks_77  -64
    y_77      mapping_0_59  -1
    y_78      Obj       397950976
    y_78      one_family  1
    y_78      least_uplinks_78  16
    y_78      most_uplinks_78  -64
    y_78      mapping_0_59  -1
    y_79      Obj       397950976
    y_79      one_family  1
    y_79      least_uplinks_79  22
    y_79      most_uplinks_79  -43
    y_79      mapping_0_61  -1
    y_80      Obj       397950976
    y_80      one_family  1
    y_80      least_uplinks_80  22
    y_80      most_uplinks_80  -43
    y_80      mapping_0_62  -1
    y_81      Obj       397950976
    y_81      one_family  1
    y_81      least_uplinks_81  22
    y_81      most_uplinks_81  -43
    y_81      mapping_0_61  -1
    y_82      Obj       397950976
    y_82      one_family  1
    y_82      least_uplinks_82  22
    y_82      most_uplinks_82  -43
    y_82      mapping_0_61  -1
    y_83      Obj       397950976
    y_83      one_family  1
    y_83      least_uplinks_83  24
    y_83      most_uplinks_83  -32
    y_83      mapping_0_63  -1
    y_84      Obj       397950976
    y_84      one_family  1
    y_84      least_uplinks_84  24
    y_84      most_uplinks_84  -32
    y_84      mapping_0_64  -1
    y_85      Obj       397950976
    y_85      one_family  1
    y_85      least_uplinks_85  24
    y_85      most_uplinks_85  -32
    y_85      mapping_0_63  -1
    y_86      Obj       397950976
    y_86      one_family  1
    y_86      least_uplinks_86  24
    y_86      most_uplinks_86  -32
    y_86      mapping_0_63  -1
    y_87      Obj       397950976
    y_87      one_family  1
    y_87      least_uplinks_87  26
    y_87      most_uplinks_87  -26
    y_87      mapping_0_65  -1
    y_88      Obj       397950976
    y_88      one_family  1
    y_88      least_uplinks_88  26
    y_88      most_uplinks_88  -26
    y_88      mapping_0_66  -1
    y_89      Obj       397950976
    y_89      one_family  1
    y_89      least_uplinks_89  26
    y_89      most_uplinks_89  -26
    y_89      mapping_0_65  -1
    y_90      Obj       397950976
    y_90      one_family  1
    y_90      least_uplinks_90  26
    y_90      most_uplinks_90  -26
    y_90      mapping_0_65  -1
    y_91      Obj       397950976
    y_91      one_family  1
    y_91      least_uplinks_91  32
    y_91      most_uplinks_91  -128
    y_91      mapping_0_48  -1
    y_92      Obj       397950976
    y_92      one_family  1
    y_92      least_uplinks_92  8
    y_92      most_uplinks_92  -32
    y_92      mapping_0_67  -1
    y_93      Obj       397950976
    y_93      one_family  1
    y_93      least_uplinks_93  8
    y_93      most_uplinks_93  -32
    y_93      mapping_0_68  -1
    y_94      Obj       397950976
    y_94      one_family  1
    y_94      least_uplinks_94  8
    y_94      most_uplinks_94  -32
    y_94      mapping_0_69  -1
    y_95      Obj       387157888
    y_95      one_family  1
    y_95      least_uplinks_95  11
    y_95      most_uplinks_95  -22
    y_95      mapping_0_70  -1
    y_96      Obj       397950976
    y_96      one_family  1
    y_96      least_uplinks_96  16
    y_96      most_uplinks_96  -64
    y_96      mapping_0_71  -1
    y_97      Obj       397950976
    y_97      one_family  1
    y_97      least_uplinks_97  16
    y_97      most_uplinks_97  -64
    y_97      mapping_0_72  -1
    y_98      Obj       397950976
    y_98      one_family  1
    y_98      least_uplinks_98  16
    y_98      most_uplinks_98  -64
    y_98      mapping_0_73  -1
    y_99      Obj       397950976
    y_99      one_family  1
    y_99      least_uplinks_99  16
    y_99      most_uplinks_99  -64
    y_99      mapping_0_74  -1
    y_100     Obj       397950976
    y_100     one_family  1
    y_100     least_uplinks_100  32
    y_100     most_uplinks_100  -128
    y_100     mapping_0_75  -1
    u_0       Obj       407552
    u_0       least_uplinks_0  -1
    u_0       most_uplinks_0  1
    u_0       spine_ports_0  8
    u_0       uplinks_demanded_0_0  -1
    u_1       Obj       356608
    u_1       least_uplinks_1  -1
    u_1       most_uplinks_1  1
    u_1       spine_ports_1  7
    u_1       uplinks_demanded_0_1  -1
    u_2       Obj       356608
    u_2       least_uplinks_2  -1
    u_2       most_uplinks_2  1
    u_2       spine_ports_2  7
    u_2       uplinks_demanded_0_2  -1
    u_3       Obj       305664
    u_3       least_uplinks_3  -1
    u_3       most_uplinks_3  1
    u_3       spine_ports_3  6
    u_3       uplinks_demanded_0_3  -1
    u_4       Obj       305664
    u_4       least_uplinks_4  -1
    u_4       most_uplinks_4  1
    u_4       spine_ports_4  6
    u_4       uplinks_demanded_0_4  -1
    u_5       Obj       203776
    u_5       least_uplinks_5  -1
    u_5       most_uplinks_5  1
    u_5       spine_ports_5  4
    u_5       uplinks_demanded_0_5  -1
    u_6       Obj       203776
    u_6       least_uplinks_6  -1
    u_6       most_uplinks_6  1
    u_6       spine_ports_6  4
    u_6       uplinks_demanded_0_6  -1
    u_7       Obj       203776
    u_7       least_uplinks_7  -1
    u_7       most_uplinks_7  1
    u_7       spine_ports_7  4
    u_7       uplinks_demanded_0_7  -1
    u_8       Obj       152832
    u_8       least_uplinks_8  -1
    u_8       most_uplinks_8  1
    u_8       spine_ports_8  3
    u_8       uplinks_demanded_0_8  -1
    u_9       Obj       152832
    u_9       least_uplinks_9  -1
    u_9       most_uplinks_9  1
    u_9       spine_ports_9  3
    u_9       uplinks_demanded_0_9  -1
    u_10      least_uplinks_10  -1
    u_10      most_uplinks_10  1
    u_10      uplinks_demanded_0_10  -1
    u_11      Obj       2947072
    u_11      least_uplinks_11  -1
    u_11      most_uplinks_11  1
    u_11      uplinks_demanded_0_11  -1
    u_12      Obj       2225428
    u_12      least_uplinks_12  -1
    u_12      most_uplinks_12  1
    u_12      uplinks_demanded_0_12  -1
    u_13      Obj       1880128
    u_13      least_uplinks_13  -1
    u_13      most_uplinks_13  1
    u_13      uplinks_demanded_0_11  -1
    u_14      Obj       2026350
    u_14      least_uplinks_14  -1
    u_14      most_uplinks_14  1
    u_14      uplinks_demanded_0_13  -1
    u_15      Obj       2667520
    u_15      least_uplinks_15  -1
    u_15      most_uplinks_15  1
    u_15      uplinks_demanded_0_14  -1
    u_16      Obj       2014968
    u_16      least_uplinks_16  -1
    u_16      most_uplinks_16  1
    u_16      uplinks_demanded_0_15  -1
    u_17      Obj       1676832
    u_17      least_uplinks_17  -1
    u_17      most_uplinks_17  1
    u_17      uplinks_demanded_0_16  -1
    u_18      Obj       1826636
    u_18      least_uplinks_18  -1
    u_18      most_uplinks_18  1
    u_18      uplinks_demanded_0_17  -1
    u_19      Obj       2387968
    u_19      least_uplinks_19  -1
    u_19      most_uplinks_19  1
    u_19      uplinks_demanded_0_18  -1
    u_20      Obj       1804508
    u_20      least_uplinks_20  -1
    u_20      most_uplinks_20  1
    u_20      uplinks_demanded_0_19  -1
    u_21      Obj       1295872
    u_21      least_uplinks_21  -1
    u_21      most_uplinks_21  1
    u_21      uplinks_demanded_0_19  -1
    u_22      Obj       1676512
    u_22      least_uplinks_22  -1
    u_22      most_uplinks_22  1
    u_22      uplinks_demanded_0_20  -1
    u_23      Obj       2387968
    u_23      least_uplinks_23  -1
    u_23      most_uplinks_23  1
    u_23      uplinks_demanded_0_21  -1
    u_24      Obj       1804508
    u_24      least_uplinks_24  -1
    u_24      most_uplinks_24  1
    u_24      uplinks_demanded_0_4  -1
    u_25      Obj       1295872
    u_25      least_uplinks_25  -1
    u_25      most_uplinks_25  1
    u_25      uplinks_demanded_0_4  -1
    u_26      Obj       1676512
    u_26      least_uplinks_26  -1
    u_26      most_uplinks_26  1
    u_26      uplinks_demanded_0_22  -1
    u_27      Obj       1473536
    u_27      least_uplinks_27  -1
    u_27      most_uplinks_27  1
    u_27      uplinks_demanded_0_23  -1
    u_28      Obj       4765174
    u_28      least_uplinks_28  -1
    u_28      most_uplinks_28  1
    u_28      uplinks_demanded_0_24  -1
    u_29      Obj       990848
    u_29      least_uplinks_29  -1
    u_29      most_uplinks_29  1
    u_29      uplinks_demanded_0_23  -1
    u_30      Obj       976520
    u_30      least_uplinks_30  -1
    u_30      most_uplinks_30  1
    u_30      uplinks_demanded_0_25  -1
    u_31      Obj       1473536
    u_31      least_uplinks_31  -1
    u_31      most_uplinks_31  1
    u_31      uplinks_demanded_0_7  -1
    u_32      Obj       4765174
    u_32      least_uplinks_32  -1
    u_32      most_uplinks_32  1
    u_32      uplinks_demanded_0_26  -1
    u_33      Obj       990848
    u_33      least_uplinks_33  -1
    u_33      most_uplinks_33  1
    u_33      uplinks_demanded_0_7  -1
    u_34      Obj       976520
    u_34      least_uplinks_34  -1
    u_34      most_uplinks_34  1
    u_34      uplinks_demanded_0_27  -1
    u_35      Obj       1193984
    u_35      least_uplinks_35  -1
    u_35      most_uplinks_35  1
    u_35      uplinks_demanded_0_28  -1
    u_36      Obj       4502338
    u_36      least_uplinks_36  -1
    u_36      most_uplinks_36  1
    u_36      uplinks_demanded_0_29  -1
    u_37      Obj       647936
    u_37      least_uplinks_37  -1
    u_37      most_uplinks_37  1
    u_37      uplinks_demanded_0_30  -1
    u_38      Obj       638384
    u_38      least_uplinks_38  -1
    u_38      most_uplinks_38  1
    u_38      uplinks_demanded_0_30  -1
    u_39      Obj       1193984
    u_39      least_uplinks_39  -1
    u_39      most_uplinks_39  1
    u_39      uplinks_demanded_0_31  -1
    u_40      Obj       4502338
    u_40      least_uplinks_40  -1
    u_40      most_uplinks_40  1
    u_40      uplinks_demanded_0_32  -1
    u_41      Obj       647936
    u_41      least_uplinks_41  -1
    u_41      most_uplinks_41  1
    u_41      uplinks_demanded_0_33  -1
    u_42      Obj       638384
    u_42      least_uplinks_42  -1
    u_42      most_uplinks_42  1
    u_42      uplinks_demanded_0_33  -1
    u_43      Obj       101888
    u_43      least_uplinks_43  -1
    u_43      most_uplinks_43  1
    u_43      spine_ports_43  256
    u_43      uplinks_demanded_0_34  -1
    u_44      Obj       101888
    u_44      least_uplinks_44  -1
    u_44      most_uplinks_44  1
    u_44      spine_ports_44  256
    u_44      uplinks_demanded_0_35  -1
    u_45      Obj       101888
    u_45      least_uplinks_45  -1
    u_45      most_uplinks_45  1
    u_45      spine_ports_45  256
    u_45      uplinks_demanded_0_36  -1
    u_46      Obj       101888
    u_46      least_uplinks_46  -1
    u_46      most_uplinks_46  1
    u_46      spine_ports_46  256
    u_46      uplinks_demanded_0_37  -1
    u_47      Obj       2947072
    u_47      least_uplinks_47  -1
    u_47      most_uplinks_47  1
    u_47      uplinks_demanded_0_38  -1
    u_48      Obj       1473536
    u_48      least_uplinks_48  -1
    u_48      most_uplinks_48  1
    u_48      uplinks_demanded_0_39  -1
    u_49      Obj       4765174
    u_49      least_uplinks_49  -1
    u_49      most_uplinks_49  1
    u_49      uplinks_demanded_0_40  -1
    u_50      Obj       990848
    u_50      least_uplinks_50  -1
    u_50      most_uplinks_50  1
    u_50      uplinks_demanded_0_41  -1
    u_51      Obj       976520
    u_51      least_uplinks_51  -1
    u_51      most_uplinks_51  1
    u_51      uplinks_demanded_0_42  -1
    u_52      Obj       101888
    u_52      least_uplinks_52  -1
    u_52      most_uplinks_52  1
    u_52      spine_ports_52  256
    u_52      uplinks_demanded_0_43  -1
    u_53      Obj       407552
    u_53      least_uplinks_53  -1
    u_53      most_uplinks_53  1
    u_53      spine_ports_53  4
    u_53      uplinks_demanded_0_44  -1
    u_54      Obj       407552
    u_54      least_uplinks_54  -1
    u_54      most_uplinks_54  1
    u_54      spine_ports_54  4
    u_54      uplinks_demanded_0_45  -1
    u_55      Obj       305664
    u_55      least_uplinks_55  -1
    u_55      most_uplinks_55  1
    u_55      spine_ports_55  3
    u_55      uplinks_demanded_0_46  -1
    u_56      Obj       305664
    u_56      least_uplinks_56  -1
    u_56      most_uplinks_56  1
    u_56      spine_ports_56  3
    u_56      uplinks_demanded_0_47  -1
    u_57      least_uplinks_57  -1
    u_57      most_uplinks_57  1
    u_57      uplinks_demanded_0_48  -1
    u_58      least_uplinks_58  -1
    u_58      most_uplinks_58  1
    u_58      uplinks_demanded_0_48  -1
    u_59      Obj       2947072
    u_59      least_uplinks_59  -1
    u_59      most_uplinks_59  1
    u_59      uplinks_demanded_0_49  -1
    u_60      Obj       2225428
    u_60      least_uplinks_60  -1
    u_60      most_uplinks_60  1
    u_60      uplinks_demanded_0_50  -1
    u_61      Obj       1880128
    u_61      least_uplinks_61  -1
    u_61      most_uplinks_61  1
    u_61      uplinks_demanded_0_49  -1
    u_62      Obj       2026350
    u_62      least_uplinks_62  -1
    u_62      most_uplinks_62  1
    u_62      uplinks_demanded_0_51  -1
    u_63      Obj       2947072
    u_63      least_uplinks_63  -1
    u_63      most_uplinks_63  1
    u_63      uplinks_demanded_0_52  -1
    u_64      Obj       2225428
    u_64      least_uplinks_64  -1
    u_64      most_uplinks_64  1
    u_64      uplinks_demanded_0_53  -1
    u_65      Obj       1880128
    u_65      least_uplinks_65  -1
    u_65      most_uplinks_65  1
    u_65      uplinks_demanded_0_52  -1
    u_66      Obj       2026350
    u_66      least_uplinks_66  -1
    u_66      most_uplinks_66  1
    u_66      uplinks_demanded_0_54  -1
    u_67      Obj       2387968
    u_67      least_uplinks_67  -1
    u_67      most_uplinks_67  1
    u_67      uplinks_demanded_0_55  -1
    u_68      Obj       1804508
    u_68      least_uplinks_68  -1
    u_68      most_uplinks_68  1
    u_68      uplinks_demanded_0_56  -1
    u_69      Obj       1295872
    u_69      least_uplinks_69  -1
    u_69      most_uplinks_69  1
    u_69      uplinks_demanded_0_56  -1
    u_70      Obj       1676512
    u_70      least_uplinks_70  -1
    u_70      most_uplinks_70  1
    u_70      uplinks_demanded_0_56  -1
    u_71      Obj       2387968
    u_71      least_uplinks_71  -1
    u_71      most_uplinks_71  1
    u_71      uplinks_demanded_0_57  -1
    u_72      Obj       1804508
    u_72      least_uplinks_72  -1
    u_72      most_uplinks_72  1
    u_72      uplinks_demanded_0_58  -1
    u_73      Obj       1295872
    u_73      least_uplinks_73  -1
    u_73      most_uplinks_73  1
    u_73      uplinks_demanded_0_58  -1
    u_74      Obj       1676512
    u_74      least_uplinks_74  -1
    u_74      most_uplinks_74  1
    u_74      uplinks_demanded_0_58  -1
    u_75      Obj       1473536
    u_75      least_uplinks_75  -1
    u_75      most_uplinks_75  1
    u_75      uplinks_demanded_0_59  -1
    u_76      Obj       4765174
    u_76      least_uplinks_76  -1
    u_76      most_uplinks_76  1
    u_76      uplinks_demanded_0_60  -1
    u_77      Obj       990848
    u_77      least_uplinks_77  -1
    u_77      most_uplinks_77  1
    u_77      uplinks_demanded_0_59  -1
    u_78      Obj       976520
    u_78      least_uplinks_78  -1
    u_78      most_uplinks_78  1
    u_78      uplinks_demanded_0_59  -1
    u_79      Obj       1473536
    u_79      least_uplinks_79  -1
    u_79      most_uplinks_79  1
    u_79      uplinks_demanded_0_61  -1
    u_80      Obj       4765174
    u_80      least_uplinks_80  -1
    u_80      most_uplinks_80  1
    u_80      uplinks_demanded_0_62  -1
    u_81      Obj       990848
    u_81      least_uplinks_81  -1
    u_81      most_uplinks_81  1
    u_81      uplinks_demanded_0_61  -1
    u_82      Obj       976520
    u_82      least_uplinks_82  -1
    u_82      most_uplinks_82  1
    u_82      uplinks_demanded_0_61  -1
    u_83      Obj       1473536
    u_83      least_uplinks_83  -1
    u_83      most_uplinks_83  1
    u_83      uplinks_demanded_0_63  -1
    u_84      Obj       4765174
    u_84      least_uplinks_84  -1
    u_84      most_uplinks_84  1
    u_84      uplinks_demanded_0_64  -1
    u_85      Obj       990848
    u_85      least_uplinks_85  -1
    u_85      most_uplinks_85  1
    u_85      uplinks_demanded_0_63  -1
    u_86      Obj       976520
    u_86      least_uplinks_86  -1
    u_86      most_uplinks_86  1
    u_86      uplinks_demanded_0_63  -1
    u_87      Obj       1473536
    u_87      least_uplinks_87  -1
    u_87      most_uplinks_87  1
    u_87      uplinks_demanded_0_65  -1
    u_88      Obj       4765174
    u_88      least_uplinks_88  -1
    u_88      most_uplinks_88  1
    u_88      uplinks_demanded_0_66  -1
    u_89      Obj       990848
    u_89      least_uplinks_89  -1
    u_89      most_uplinks_89  1
    u_89      uplinks_demanded_0_65  -1
    u_90      Obj       976520
    u_90      least_uplinks_90  -1
    u_90      most_uplinks_90  1
    u_90      uplinks_demanded_0_65  -1
    u_91      Obj       101888
    u_91      least_uplinks_91  -1
    u_91      most_uplinks_91  1
    u_91      spine_ports_91  256
    u_91      uplinks_demanded_0_48  -1
    u_92      Obj       2947072
    u_92      least_uplinks_92  -1
    u_92      most_uplinks_92  1
    u_92      uplinks_demanded_0_67  -1
    u_93      Obj       2225428
    u_93      least_uplinks_93  -1
    u_93      most_uplinks_93  1
    u_93      uplinks_demanded_0_68  -1
    u_94      Obj       1880128
    u_94      least_uplinks_94  -1
    u_94      most_uplinks_94  1
    u_94      uplinks_demanded_0_69  -1
    u_95      Obj       2450294
    u_95      least_uplinks_95  -1
    u_95      most_uplinks_95  1
    u_95      uplinks_demanded_0_70  -1
    u_96      Obj       1473536
    u_96      least_uplinks_96  -1
    u_96      most_uplinks_96  1
    u_96      uplinks_demanded_0_71  -1
    u_97      Obj       4765174
    u_97      least_uplinks_97  -1
    u_97      most_uplinks_97  1
    u_97      uplinks_demanded_0_72  -1
    u_98      Obj       990848
    u_98      least_uplinks_98  -1
    u_98      most_uplinks_98  1
    u_98      uplinks_demanded_0_73  -1
    u_99      Obj       976520
    u_99      least_uplinks_99  -1
    u_99      most_uplinks_99  1
    u_99      uplinks_demanded_0_74  -1
    u_100     Obj       101888
    u_100     least_uplinks_100  -1
    u_100     most_uplinks_100  1
    u_100     spine_ports_100  256
    u_100     uplinks_demanded_0_75  -1
    s_0       Obj       5685248
    s_0       spine_ports_0  -64
    s_1       Obj       5685248
    s_1       spine_ports_1  -63
    s_2       Obj       5685248
    s_2       spine_ports_2  -14
    s_3       Obj       5685248
    s_3       spine_ports_3  -60
    s_4       Obj       5685248
    s_4       spine_ports_4  -6
    s_5       Obj       11370496
    s_5       spine_ports_5  -128
    s_6       Obj       11370496
    s_6       spine_ports_6  -128
    s_7       Obj       11370496
    s_7       spine_ports_7  -4
    s_8       Obj       11370496
    s_8       spine_ports_8  -126
    s_9       Obj       11370496
    s_9       spine_ports_9  -126
    s_10      spine_ports_10  1
    s_11      spine_ports_11  1
    s_12      spine_ports_12  1
    s_13      spine_ports_13  1
    s_14      spine_ports_14  1
    s_15      spine_ports_15  1
    s_16      spine_ports_16  1
    s_17      spine_ports_17  1
    s_18      spine_ports_18  1
    s_19      spine_ports_19  1
    s_20      spine_ports_20  1
    s_21      spine_ports_21  1
    s_22      spine_ports_22  1
    s_23      spine_ports_23  1
    s_24      spine_ports_24  1
    s_25      spine_ports_25  1
    s_26      spine_ports_26  1
    s_27      spine_ports_27  1
    s_28      spine_ports_28  1
    s_29      spine_ports_29  1
    s_30      spine_ports_30  1
    s_31      spine_ports_31  1
    s_32      spine_ports_32  1
    s_33      spine_ports_33  1
    s_34      spine_ports_34  1
    s_35      spine_ports_35  1
    s_36      spine_ports_36  1
    s_37      spine_ports_37  1
    s_38      spine_ports_38  1
    s_39      spine_ports_39  1
    s_40      spine_ports_40  1
    s_41      spine_ports_41  1
    s_42      spine_ports_42  1
    s_43      Obj       177664
    s_43      spine_ports_43  -256
    s_44      Obj       177664
    s_44      spine_ports_44  -256
    s_45      Obj       177664
    s_45      spine_ports_45  -256
    s_46      Obj       177664
    s_46      spine_ports_46  -256
    s_47      spine_ports_47  1
    s_48      spine_ports_48  1
    s_49      spine_ports_49  1
    s_50      spine_ports_50  1
    s_51      spine_ports_51  1
    s_52      Obj       177664
    s_52      spine_ports_52  -256
    s_53      Obj       11370496
    s_53      spine_ports_53  -64
    s_54      Obj       11370496
    s_54      spine_ports_54  -64
    s_55      Obj       11370496
    s_55      spine_ports_55  -63
    s_56      Obj       11370496
    s_56      spine_ports_56  -63
    s_57      spine_ports_57  1
    s_58      spine_ports_58  1
    s_59      spine_ports_59  1
    s_60      spine_ports_60  1
    s_61      spine_ports_61  1
    s_62      spine_ports_62  1
    s_63      spine_ports_63  1
    s_64      spine_ports_64  1
    s_65      spine_ports_65  1
    s_66      spine_ports_66  1
    s_67      spine_ports_67  1
    s_68      spine_ports_68  1
    s_69      spine_ports_69  1
    s_70      spine_ports_70  1
    s_71      spine_ports_71  1
    s_72      spine_ports_72  1
    s_73      spine_ports_73  1
    s_74      spine_ports_74  1
    s_75      spine_ports_75  1
    s_76      spine_ports_76  1
    s_77      spine_ports_77  1
    s_78      spine_ports_78  1
    s_79      spine_ports_79  1
    s_80      spine_ports_80  1
    s_81      spine_ports_81  1
    s_82      spine_ports_82  1
    s_83      spine_ports_83  1
    s_84      spine_ports_84  1
    s_85      spine_ports_85  1
    s_86      spine_ports_86  1
    s_87      spine_ports_87  1
    s_88      spine_ports_88  1
    s_89      spine_ports_89  1
    s_90      spine_ports_90  1
    s_91      Obj       177664
    s_91      spine_ports_91  -256
    s_92      spine_ports_92  1
    s_93      spine_ports_93  1
    s_94      spine_ports_94  1
    s_95      spine_ports_95  1
    s_96      spine_ports_96  1
    s_97      spine_ports_97  1
    s_98      spine_ports_98  1
    s_99      spine_ports_99  1
    s_100     Obj       177664
    s_100     spine_ports_100  -256
    z_0       mapping_0_0  1
    z_0       uplinks_demanded_0_0  7
    z_1       mapping_0_1  1
    z_1       uplinks_demanded_0_1  7
    z_2       mapping_0_2  1
    z_2       uplinks_demanded_0_2  8
    z_3       mapping_0_3  1
    z_3       uplinks_demanded_0_3  7
    z_4       mapping_0_4  1
    z_4       uplinks_demanded_0_4  7
    z_5       mapping_0_5  1
    z_5       uplinks_demanded_0_5  7
    z_6       mapping_0_6  1
    z_6       uplinks_demanded_0_6  7
    z_7       mapping_0_7  1
    z_7       uplinks_demanded_0_7  7
    z_8       mapping_0_8  1
    z_8       uplinks_demanded_0_8  7
    z_9       mapping_0_9  1
    z_9       uplinks_demanded_0_9  7
    z_10      mapping_0_10  1
    z_11      mapping_0_11  1
    z_11      uplinks_demanded_0_11  7
    z_12      mapping_0_12  1
    z_12      uplinks_demanded_0_12  7
    z_13      mapping_0_13  1
    z_13      uplinks_demanded_0_13  7
    z_14      mapping_0_14  1
    z_14      uplinks_demanded_0_14  7
    z_15      mapping_0_15  1
    z_15      uplinks_demanded_0_15  7
    z_16      mapping_0_16  1
    z_16      uplinks_demanded_0_16  7
    z_17      mapping_0_17  1
    z_17      uplinks_demanded_0_17  7
    z_18      mapping_0_18  1
    z_18      uplinks_demanded_0_18  7
    z_19      mapping_0_19  1
    z_19      uplinks_demanded_0_19  7
    z_20      mapping_0_20  1
    z_20      uplinks_demanded_0_20  7
    z_21      mapping_0_21  1
    z_21      uplinks_demanded_0_21  7
    z_22      mapping_0_22  1
    z_22      uplinks_demanded_0_22  7
    z_23      mapping_0_23  1
    z_23      uplinks_demanded_0_23  7
    z_24      mapping_0_24  1
    z_24      uplinks_demanded_0_24  7
    z_25      mapping_0_25  1
    z_25      uplinks_demanded_0_25  7
    z_26      mapping_0_26  1
    z_26      uplinks_demanded_0_26  7
    z_27      mapping_0_27  1
    z_27      uplinks_demanded_0_27  7
    z_28      mapping_0_28  1
    z_28      uplinks_demanded_0_28  7
    z_29      mapping_0_29  1
    z_29      uplinks_demanded_0_29  7
    z_30      mapping_0_30  1
    z_30      uplinks_demanded_0_30  7
    z_31      mapping_0_31  1
    z_31      uplinks_demanded_0_31  7
    z_32      mapping_0_32  1
    z_32      uplinks_demanded_0_32  7
    z_33      mapping_0_33  1
    z_33      uplinks_demanded_0_33  7
    z_34      mapping_0_34  1
    z_34      uplinks_demanded_0_34  7
    z_35      mapping_0_35  1
    z_35      uplinks_demanded_0_35  7
    z_36      mapping_0_36  1
    z_36      uplinks_demanded_0_36  7
    z_37      mapping_0_37  1
    z_37      uplinks_demanded_0_37  7
    z_38      mapping_0_38  1
    z_38      uplinks_demanded_0_38  28
    z_39      mapping_0_39  1
    z_39      uplinks_demanded_0_39  55
    z_40      mapping_0_40  1
    z_40      uplinks_demanded_0_40  55
    z_41      mapping_0_41  1
    z_41      uplinks_demanded_0_41  55
    z_42      mapping_0_42  1
    z_42      uplinks_demanded_0_42  55
    z_43      mapping_0_43  1
    z_43      uplinks_demanded_0_43  110
    z_44      mapping_0_44  1
    z_44      uplinks_demanded_0_44  4
    z_45      mapping_0_45  1
    z_45      uplinks_demanded_0_45  4
    z_46      mapping_0_46  1
    z_46      uplinks_demanded_0_46  4
    z_47      mapping_0_47  1
    z_47      uplinks_demanded_0_47  4
    z_48      mapping_0_48  1
    z_49      mapping_0_49  1
    z_49      uplinks_demanded_0_49  4
    z_50      mapping_0_50  1
    z_50      uplinks_demanded_0_50  4
    z_51      mapping_0_51  1
    z_51      uplinks_demanded_0_51  4
    z_52      mapping_0_52  1
    z_52      uplinks_demanded_0_52  4
    z_53      mapping_0_53  1
    z_53      uplinks_demanded_0_53  4
    z_54      mapping_0_54  1
    z_54      uplinks_demanded_0_54  4
    z_55      mapping_0_55  1
    z_55      uplinks_demanded_0_55  4
    z_56      mapping_0_56  1
    z_56      uplinks_demanded_0_56  4
    z_57      mapping_0_57  1
    z_57      uplinks_demanded_0_57  4
    z_58      mapping_0_58  1
    z_58      uplinks_demanded_0_58  4
    z_59      mapping_0_59  1
    z_59      uplinks_demanded_0_59  4
    z_60      mapping_0_60  1
    z_60      uplinks_demanded_0_60  4
    z_61      mapping_0_61  1
    z_61      uplinks_demanded_0_61  4
    z_62      mapping_0_62  1
    z_62      uplinks_demanded_0_62  4
    z_63      mapping_0_63  1
    z_63      uplinks_demanded_0_63  4
    z_64      mapping_0_64  1
    z_64      uplinks_demanded_0_64  4
    z_65      mapping_0_65  1
    z_65      uplinks_demanded_0_65  4
    z_66      mapping_0_66  1
    z_66      uplinks_demanded_0_66  4
    z_67      mapping_0_67  1
    z_67      uplinks_demanded_0_67  17
    z_68      mapping_0_68  1
    z_68      uplinks_demanded_0_68  22
    z_69      mapping_0_69  1
    z_69      uplinks_demanded_0_69  29
    z_70      mapping_0_70  1
    z_70      uplinks_demanded_0_70  22
    z_71      mapping_0_71  1
    z_71      uplinks_demanded_0_71  34
    z_72      mapping_0_72  1
    z_72      uplinks_demanded_0_72  34
    z_73      mapping_0_73  1
    z_73      uplinks_demanded_0_73  34
    z_74      mapping_0_74  1
    z_74      uplinks_demanded_0_74  39
    z_75      mapping_0_75  1
    z_75      uplinks_demanded_0_75  67
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
 BV BOUND     y_35    
 BV BOUND     y_36    
 BV BOUND     y_37    
 BV BOUND     y_38    
 BV BOUND     y_39    
 BV BOUND     y_40    
 BV BOUND     y_41    
 BV BOUND     y_42    
 BV BOUND     y_43    
 BV BOUND     y_44    
 BV BOUND     y_45    
 BV BOUND     y_46    
 BV BOUND     y_47    
 BV BOUND     y_48    
 BV BOUND     y_49    
 BV BOUND     y_50    
 BV BOUND     y_51    
 BV BOUND     y_52    
 BV BOUND     y_53    
 BV BOUND     y_54    
 BV BOUND     y_55    
 BV BOUND     y_56    
 BV BOUND     y_57    
 BV BOUND     y_58    
 BV BOUND     y_59    
 BV BOUND     y_60    
 BV BOUND     y_61    
 BV BOUND     y_62    
 BV BOUND     y_63    
 BV BOUND     y_64    
 BV BOUND     y_65    
 BV BOUND     y_66    
 BV BOUND     y_67    
 BV BOUND     y_68    
 BV BOUND     y_69    
 BV BOUND     y_70    
 BV BOUND     y_71    
 BV BOUND     y_72    
 BV BOUND     y_73    
 BV BOUND     y_74    
 BV BOUND     y_75    
 BV BOUND     y_76    
 BV BOUND     y_77    
 BV BOUND     y_78    
 BV BOUND     y_79    
 BV BOUND     y_80    
 BV BOUND     y_81    
 BV BOUND     y_82    
 BV BOUND     y_83    
 BV BOUND     y_84    
 BV BOUND     y_85    
 BV BOUND     y_86    
 BV BOUND     y_87    
 BV BOUND     y_88    
 BV BOUND     y_89    
 BV BOUND     y_90    
 BV BOUND     y_91    
 BV BOUND     y_92    
 BV BOUND     y_93    
 BV BOUND     y_94    
 BV BOUND     y_95    
 BV BOUND     y_96    
 BV BOUND     y_97    
 BV BOUND     y_98    
 BV BOUND     y_99    
 BV BOUND     y_100   
 UI BOUND     u_0       32
 UI BOUND     u_1       21
 UI BOUND     u_2       22
 UI BOUND     u_3       16
 UI BOUND     u_4       13
 UI BOUND     u_5       64
 UI BOUND     u_6       42
 UI BOUND     u_7       43
 UI BOUND     u_8       32
 UI BOUND     u_9       26
 FX BOUND     u_10      0
 UI BOUND     u_11      32
 UI BOUND     u_12      32
 UI BOUND     u_13      32
 UI BOUND     u_14      32
 UI BOUND     u_15      22
 UI BOUND     u_16      22
 UI BOUND     u_17      22
 UI BOUND     u_18      22
 UI BOUND     u_19      16
 UI BOUND     u_20      16
 UI BOUND     u_21      16
 UI BOUND     u_22      16
 UI BOUND     u_23      13
 UI BOUND     u_24      13
 UI BOUND     u_25      13
 UI BOUND     u_26      13
 UI BOUND     u_27      64
 UI BOUND     u_28      64
 UI BOUND     u_29      64
 UI BOUND     u_30      64
 UI BOUND     u_31      43
 UI BOUND     u_32      43
 UI BOUND     u_33      43
 UI BOUND     u_34      43
 UI BOUND     u_35      32
 UI BOUND     u_36      32
 UI BOUND     u_37      32
 UI BOUND     u_38      32
 UI BOUND     u_39      26
 UI BOUND     u_40      26
 UI BOUND     u_41      26
 UI BOUND     u_42      26
 UI BOUND     u_43      128
 UI BOUND     u_44      86
 UI BOUND     u_45      64
 UI BOUND     u_46      52
 UI BOUND     u_47      32
 UI BOUND     u_48      64
 UI BOUND     u_49      64
 UI BOUND     u_50      64
 UI BOUND     u_51      64
 UI BOUND     u_52      128
 UI BOUND     u_53      32
 UI BOUND     u_54      22
 UI BOUND     u_55      16
 UI BOUND     u_56      13
 FX BOUND     u_57      0
 FX BOUND     u_58      0
 UI BOUND     u_59      32
 UI BOUND     u_60      32
 UI BOUND     u_61      32
 UI BOUND     u_62      32
 UI BOUND     u_63      22
 UI BOUND     u_64      22
 UI BOUND     u_65      22
 UI BOUND     u_66      22
 UI BOUND     u_67      16
 UI BOUND     u_68      16
 UI BOUND     u_69      16
 UI BOUND     u_70      16
 UI BOUND     u_71      13
 UI BOUND     u_72      13
 UI BOUND     u_73      13
 UI BOUND     u_74      13
 UI BOUND     u_75      64
 UI BOUND     u_76      64
 UI BOUND     u_77      64
 UI BOUND     u_78      64
 UI BOUND     u_79      43
 UI BOUND     u_80      43
 UI BOUND     u_81      43
 UI BOUND     u_82      43
 UI BOUND     u_83      32
 UI BOUND     u_84      32
 UI BOUND     u_85      32
 UI BOUND     u_86      32
 UI BOUND     u_87      26
 UI BOUND     u_88      26
 UI BOUND     u_89      26
 UI BOUND     u_90      26
 UI BOUND     u_91      128
 UI BOUND     u_92      32
 UI BOUND     u_93      32
 UI BOUND     u_94      32
 UI BOUND     u_95      22
 UI BOUND     u_96      64
 UI BOUND     u_97      64
 UI BOUND     u_98      64
 UI BOUND     u_99      64
 UI BOUND     u_100     128
 UI BOUND     s_0       4
 UI BOUND     s_1       3
 UI BOUND     s_2       11
 UI BOUND     s_3       2
 UI BOUND     s_4       13
 UI BOUND     s_5       2
 UI BOUND     s_6       2
 UI BOUND     s_7       43
 BV BOUND     s_8     
 BV BOUND     s_9     
 FX BOUND     s_10      0
 FX BOUND     s_11      0
 FX BOUND     s_12      0
 FX BOUND     s_13      0
 FX BOUND     s_14      0
 FX BOUND     s_15      0
 FX BOUND     s_16      0
 FX BOUND     s_17      0
 FX BOUND     s_18      0
 FX BOUND     s_19      0
 FX BOUND     s_20      0
 FX BOUND     s_21      0
 FX BOUND     s_22      0
 FX BOUND     s_23      0
 FX BOUND     s_24      0
 FX BOUND     s_25      0
 FX BOUND     s_26      0
 FX BOUND     s_27      0
 FX BOUND     s_28      0
 FX BOUND     s_29      0
 FX BOUND     s_30      0
 FX BOUND     s_31      0
 FX BOUND     s_32      0
 FX BOUND     s_33      0
 FX BOUND     s_34      0
 FX BOUND     s_35      0
 FX BOUND     s_36      0
 FX BOUND     s_37      0
 FX BOUND     s_38      0
 FX BOUND     s_39      0
 FX BOUND     s_40      0
 FX BOUND     s_41      0
 FX BOUND     s_42      0
 UI BOUND     s_43      128
 UI BOUND     s_44      86
 UI BOUND     s_45      64
 UI BOUND     s_46      52
 FX BOUND     s_47      0
 FX BOUND     s_48      0
 FX BOUND     s_49      0
 FX BOUND     s_50      0
 FX BOUND     s_51      0
 UI BOUND     s_52      128
 UI BOUND     s_53      2
 UI BOUND     s_54      2
 BV BOUND     s_55    
 BV BOUND     s_56    
 FX BOUND     s_57      0
 FX BOUND     s_58      0
 FX BOUND     s_59      0
 FX BOUND     s_60      0
 FX BOUND     s_61      0
 FX BOUND     s_62      0
 FX BOUND     s_63      0
 FX BOUND     s_64      0
 FX BOUND     s_65      0
 FX BOUND     s_66      0
 FX BOUND     s_67      0
 FX BOUND     s_68      0
 FX BOUND     s_69      0
 FX BOUND     s_70      0
 FX BOUND     s_71      0
 FX BOUND     s_72      0
 FX BOUND     s_73      0
 FX BOUND     s_74      0
 FX BOUND     s_75      0
 FX BOUND     s_76      0
 FX BOUND     s_77      0
 FX BOUND     s_78      0
 FX BOUND     s_79      0
 FX BOUND     s_80      0
 FX BOUND     s_81      0
 FX BOUND     s_82      0
 FX BOUND     s_83      0
 FX BOUND     s_84      0
 FX BOUND     s_85      0
 FX BOUND     s_86      0
 FX BOUND     s_87      0
 FX BOUND     s_88      0
 FX BOUND     s_89      0
 FX BOUND     s_90      0
 UI BOUND     s_91      128
 FX BOUND     s_92      0
 FX BOUND     s_93      0
 FX BOUND     s_94      0
 FX BOUND     s_95      0
 FX BOUND     s_96      0
 FX BOUND     s_97      0
 FX BOUND     s_98      0
 FX BOUND     s_99      0
 UI BOUND     s_100     128
 BV BOUND     z_0     
 BV BOUND     z_1     
 BV BOUND     z_2     
 BV BOUND     z_3     
 BV BOUND     z_4     
 BV BOUND     z_5     
 BV BOUND     z_6     
 BV BOUND     z_7     
 BV BOUND     z_8     
 BV BOUND     z_9     
 BV BOUND     z_10    
 BV BOUND     z_11    
 BV BOUND     z_12    
 BV BOUND     z_13    
 BV BOUND     z_14    
 BV BOUND     z_15    
 BV BOUND     z_16    
 BV BOUND     z_17    
 BV BOUND     z_18    
 BV BOUND     z_19    
 BV BOUND     z_20    
 BV BOUND     z_21    
 BV BOUND     z_22    
 BV BOUND     z_23    
 BV BOUND     z_24    
 BV BOUND     z_25    
 BV BOUND     z_26    
 BV BOUND     z_27    
 BV BOUND     z_28    
 BV BOUND     z_29    
 BV BOUND     z_30    
 BV BOUND     z_31    
 BV BOUND     z_32    
 BV BOUND     z_33    
 BV BOUND     z_34    
 BV BOUND     z_35    
 BV BOUND     z_36    
 BV BOUND     z_37    
 BV BOUND     z_38    
 BV BOUND     z_39    
 BV BOUND     z_40    
 BV BOUND     z_41    
 BV BOUND     z_42    
 BV BOUND     z_43    
 BV BOUND     z_44    
 BV BOUND     z_45    
 BV BOUND     z_46    
 BV BOUND     z_47    
 BV BOUND     z_48    
 BV BOUND     z_49    
 BV BOUND     z_50    
 BV BOUND     z_51    
 BV BOUND     z_52    
 BV BOUND     z_53    
 BV BOUND     z_54    
 BV BOUND     z_55    
 BV BOUND     z_56    
 BV BOUND     z_57    
 BV BOUND     z_58    
 BV BOUND     z_59    
 BV BOUND     z_60    
 BV BOUND     z_61    
 BV BOUND     z_62    
 BV BOUND     z_63    
 BV BOUND     z_64    
 BV BOUND     z_65    
 BV BOUND     z_66    
 BV BOUND     z_67    
 BV BOUND     z_68    
 BV BOUND     z_69    
 BV BOUND     z_70    
 BV BOUND     z_71    
 BV BOUND     z_72    
 BV BOUND     z_73    
 BV BOUND     z_74    
 BV BOUND     z_75    
ENDATA
