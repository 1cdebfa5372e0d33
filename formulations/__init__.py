r"""Mathematics only: arrays in, Pyomo models out.

A formulation is a tuple of functions; each adds one labelled equation to a model, and its docstring is that equation.

Symbols of the shared network (one network, one or more workloads that use it in turn):

=====================================  ==================  =======  ========  ==========================================
symbol                                 code                over     unit      meaning
=====================================  ==================  =======  ========  ==========================================
:math:`f \in F`                        ``m.F``                                families, alike but for their uplinks
:math:`k \in K`                        ``m.K``                                contexts, which mappings tell apart
:math:`F_k`                            ``families_of``     K                  families of a context
:math:`c \in C`                        ``m.C``                                columns: a workload's mapping in a context
:math:`w`                              ``m.WK``                               workloads, paired with contexts
:math:`C_{wk}`                         ``columns_of``      W x K              columns of a workload in a context
:math:`\ell \in L`                     ``m.L``                                limits on a resource
:math:`y_f`                            ``m.y``             F        0 or 1    family f is built
:math:`u_f`                            ``m.u``             F        links     uplinks of a leaf
:math:`s_f`                            ``m.s``             F        switches  spines of one plane
:math:`z_c`                            ``m.z``             C        0 or 1    column c is used
:math:`a_f`                            ``fixed``           F        cost      price of a family
:math:`b_f`                            ``uplink``          F        cost      price of an uplink of every leaf
:math:`e_f`                            ``spine``           F        cost      price of a spine of every plane
:math:`\underline{u}_f`                ``min_uplinks``     F        links     fewest uplinks of a leaf
:math:`\overline{u}_f`                 ``max_uplinks``     F        links     most uplinks of a leaf
:math:`N_f`                            ``leaves``          F        switches  leaves of one plane, 0 without spines
:math:`R_f`                            ``radix``           F        ports     ports of a spine for leaves
:math:`n_c`                            ``need``            C        links     least uplinks with which c meets its bound
:math:`a^\ell_f, b^\ell_f, e^\ell_f`   ``resources``       L x F    resource  use of a resource, as the cost
:math:`\bar{b}^\ell`                   ``cap``             L        resource  limit on a resource
=====================================  ==================  =======  ========  ==========================================

Symbols of routing (flows between leaves, each through one core):

=====================================  ===================  =======  ========  =========================================
symbol                                 code                 over     unit      meaning
=====================================  ===================  =======  ========  =========================================
:math:`p = (s, d) \in P`               ``m.P``                                 ordered pairs of leaves with flows
:math:`m \in M`                        ``m.M``                                 cores
:math:`M_p`                            ``cores_of``         P                  cores with links to both leaves
:math:`x_{pm}`                         ``m.x``              P x M    flows     flows of a pair through a core
:math:`\omega`                         ``m.worst``                   1/U       flows per link on the worst bundle
:math:`n_p`                            ``flows``            P        flows     flows of a pair
:math:`e_{im}`                         ``step``             L x M    1/U       load of a bundle by one flow, U / links
:math:`\underline\omega`               ``min_load``                  1/U       least load of the worst bundle
:math:`\bar\omega`                     ``max_load``                  1/U       most load of the worst bundle
=====================================  ===================  =======  ========  =========================================

Symbols of a partition (each workload gets an option of its own; prices fall with what all buy together; where islands
grow, a product of each phase and a core of each site and phase are counted apart):

========================================  ==================  =======  ========  =======================================
symbol                                    code                over     unit      meaning
========================================  ==================  =======  ========  =======================================
:math:`o \in O, O_w`                      ``m.O``                                options; those of a workload
:math:`w`                                 ``m.W``                                workloads
:math:`p \in P`                           ``m.P``                                products of a kind with a limit
:math:`p \in D`                           ``m.D``                                products with several brackets
:math:`b`                                 ``m.PB``                               brackets, paired with products
:math:`O_{wp}`                            ``users_of``        W x P              options of a workload that use p
:math:`P_k`                               ``m.K``                                products of a kind with a limit
:math:`\ell`                              ``m.L``                                limited resources
:math:`z_o`                               ``m.z``             O        0 or 1    option o is chosen
:math:`y_p`                               ``m.y``             P        0 or 1    product p is in use
:math:`v_{pb}`                            ``m.v``             P x B    0 or 1    p is bought in bracket b
:math:`x_{pb}`                            ``m.x``             P x B    units     what is bought of p in bracket b
:math:`x_{wpb}`                           ``m.share``         W x PB   units     what a workload holds of that
:math:`c`                                 ``m.C``                                cores; c - 1 is c in the phase before
:math:`n_c`                               ``m.n``             C        switches  switches of a core
:math:`p_t, p_\tau`                       ``chain``                    units     a product in a phase, in one before
:math:`q`                                 ``m.Q``                                ways prices may turn out
:math:`\delta`                            ``m.regret``                 cost      the largest regret
:math:`K^q, h^q_o, h^{qc}`                ``outlooks``        Q        cost      K, h and h of a core at such prices
:math:`b^q`                               ``min_value``       Q        cost      the least objective at such prices
:math:`K, \bar{K}`                        ``budget``                   USD       capex, and its limit
:math:`\alpha`                            ``weight``                   cost/USD  objective of a dollar of capex
:math:`k_o, h_o`                          ``usd, opex``       O        USD       capex, and objective beside it
:math:`k^c, h^c`                          ``core``                     USD       the same of a core switch
:math:`q_{op}, q^c_p`                     ``quantity``        O x P    units     units in an option, in a core switch
:math:`\overline{q}_{wp}`                 ``most_of``         W x P    units     most that w could hold of p
:math:`g_{pb}, p_{pb}`                    ``offsets, usd``    P x B    USD       bill of a bracket, price of its units
:math:`t_{pb}, \overline{t}_{pb}`         ``start, ends_of``  P x B    units     where a bracket begins and ends
:math:`q_k`                               ``max_products``    K        products  distinct products of a kind
:math:`a^\ell_o, a^{\ell c}`              ``use, core``       L x O    resource  use by an option, by a core switch
:math:`\bar{a}^\ell`                      ``cap``             L        resource  limit on a resource
:math:`R_c, r_{co}`                       ``ports, up``       C x O    ports     ports of a core switch, of an option
========================================  ==================  =======  ========  =======================================

Symbols of several sites (each gets an option; one ring of links between them):

========================================  ==================  =======  ========  =======================================
symbol                                    code                over     unit      meaning
========================================  ==================  =======  ========  =======================================
:math:`o \in O, O_s`                      ``m.O``                                options; those of a site
:math:`s`                                 ``m.S``                                sites of the ring
:math:`e`                                 ``m.E``                                links of the ring
:math:`\ell`                              ``m.L``                                limited resources
:math:`z_o`                               ``m.z``             O        0 or 1    option o is chosen
:math:`c_e`                               ``m.c``             E        channels  channels lit on a link
:math:`k_o, k_e`                          ``cost, channel``   O, E     cost      price of an option, of a channel
:math:`n_o, n`                            ``share, shares``   O        shares    shares of an option, of the cluster
:math:`a_{oe}`                            ``need``            O x E    channels  least channels with which o is in time
:math:`b^\ell_o, b^\ell_e`                ``use, channel``    L x O    resource  use by an option, by a channel
:math:`\bar{b}^\ell`                      ``cap``             L        resource  limit on a resource
========================================  ==================  =======  ========  =======================================

Symbols of direct links (domains with whole links between them; where a group of symmetries is used, all is of orbits):

=================================  ================  ========  =======  =============================================
symbol                             code              over      unit     meaning
=================================  ================  ========  =======  =============================================
:math:`p \in P`                    ``m.P``                              pairs of domains
:math:`\lvert p \rvert`            ``pairs``         P         pairs    pairs in an orbit
:math:`w \in W`                    ``m.W``                              domains
:math:`k`                          ``m.K``                              phases, which take turns on the links
:math:`s, v, i, j`                 ``m.B, m.E``                         source, target, ends of an arc
:math:`n_p, n_{ij}`                ``m.n``           P         links    links of a pair
:math:`q_w`                        ``m.q``           W         links    whole links at a domain
:math:`f^k_{s,ij}`                 ``m.f``           K x X     links    flow of a source over an arc
:math:`\lambda_k`                  ``m.pace``        K         links    pace of a phase
:math:`u_k`                        ``m.u``           K         1/links  time of a phase at its pace, from below
:math:`e_{wp}`                     ``ends``          W x P     pairs    pairs of an orbit that a domain belongs to
:math:`\bar{p}_w`                  ``ports``         W         links    ports of a domain
:math:`\delta^k_{sv}, \delta^k_w`  ``demand, sent``  K x B, W  1        sent to a domain, by a domain, at a pace of 1
:math:`w_{jk}`                     ``weight``        J x K     links    pace a phase needs alone, by affine piece j
:math:`\hat\lambda_k`              ``paces``         K         links    where a tangent touches
=================================  ================  ========  =======  =============================================
"""
