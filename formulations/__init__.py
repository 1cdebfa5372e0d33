r"""Mathematics only: arrays in, Pyomo models out.

A formulation is a tuple of functions; each adds one labelled equation to a model, and its docstring is that equation.

Symbols of the shared network (one network, one or more workloads that use it in turn):

=====================  ===============  ========  ==========================================================
symbol                 code             unit      meaning
=====================  ===============  ========  ==========================================================
:math:`f \in F`        ``m.F``                    families: networks that differ in their uplinks only
:math:`k \in K`        ``m.K``                    contexts: sets of families that look alike to mappings
:math:`c \in C`        ``m.C``                    columns: a workload's mapping in a context
:math:`(w,k)`          ``m.WK``                   pairs of workload and context
:math:`\ell \in L`     ``m.L``                    limits on a resource
:math:`y_f`            ``m.y``          0 or 1    family f is built
:math:`u_f`            ``m.u``          links     uplinks of a leaf
:math:`s_f`            ``m.s``          switches  spines of one plane
:math:`z_c`            ``m.z``          0 or 1    column c is used
:math:`\rho_f`         ``m.rho``        1         slowdown beyond a leaf: down-ports over uplinks
:math:`a_f, b_f, e_f`  ``fixed``, ...   cost      price of a family, of an uplink per leaf, of a spine per plane
:math:`n_c`            ``need``         links     least uplinks with which column c meets its bound
:math:`r_c`            ``reach``        1         largest slowdown with which column c meets its bound
=====================  ===============  ========  ==========================================================
"""
