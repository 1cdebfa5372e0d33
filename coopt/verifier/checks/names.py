"""The names of all checks, with what each asks, subject by subject."""

from __future__ import annotations

from coopt.instance.couplings import LIMITED, limit_check

CHECKS: tuple[tuple[str, str], ...] = (
    ("numbers", "every number of the plan is small enough to compute with"),
    ("instance", "the plan was made for this instance (same name and SHA-256)"),
    (
        "replaced",
        "the --set values recorded in the plan are those of the instance",
    ),
    (
        "chosen",
        "the plan names its choice where the instance leaves one open, and the instance lists it",
    ),
    (
        "tp-open",
        (
            "the plan decides that TP groups may span HB domains only where the instance leaves"
            " that open; where it does, nothing is called infeasible before that was tried"
        ),
    ),
    ("status", "the status agrees with the contents of the plan and with its gap"),
    (
        "objective-kind",
        "the objective is that of the instance, or the plan records that another was requested",
    ),
    (
        "gap-target",
        "the target gap is that of the instance, or the plan records that another was requested",
    ),
    ("objective", "the objective value equals the recomputed quantity that is minimized"),
    (
        "timed-objective",
        "time, price per token and carbon are minimized for one workload on one network only",
    ),
    ("gap", "the gap is (value - bound) / value"),
    ("parts", "the plan has the parts the question asks for, each with its name, site and phase"),
    (
        "coupled",
        "where sites train one model together, what the plan says of each site matches its part",
    ),
    ("part-networks", "each part has a design, or direct links where these are allowed"),
    (
        "part-power",
        "the power stated with each part is that of its bill, and of its phase where one network"
        " grows",
    ),
    (
        "repeated",
        (
            "a plan with one part repeats its design and workloads at the top, and its cost where"
            " there are no islands, phases or sites; a plan with several parts has no design or"
            " workloads there"
        ),
    ),
    ("gpus", "the instance allows this number of training GPUs"),
    (
        "hb-domain",
        "the instance lists the HB domain with this size, and allows this number of active GPUs",
    ),
    ("domain-count", "the instance allows this number of HB domains for the training GPUs"),
    ("spares", "spare GPUs are the idle GPUs of all HB domains, spare domains included"),
    (
        "spare-domains",
        "the instance allows this number of spare domains; without [availability] these are the"
        " domains whose GPUs are all idle",
    ),
    ("racks", "racks of all HB domains are counted and rounded up"),
    ("fabric", "the instance allows this fabric"),
    ("nic", "the instance lists this NIC"),
    ("nics-per-gpu", "the instance allows this number of NICs per GPU"),
    (
        "gpus-per-nic",
        "the instance allows this number of GPUs per NIC, and an HB domain divides evenly by it",
    ),
    ("nic-planes", "the instance allows this number of planes per NIC"),
    (
        "ports-in-plane",
        "one port of a NIC leads to each plane, or as many as in the existing network",
    ),
    (
        "switch",
        "the instance lists the switch and, where there is a network, one of its modes has ports"
        " of the rate of the NIC's ports",
    ),
    (
        "tier-products",
        "switches differ between tiers only where allowed, and those of each tier mate with those"
        " below",
    ),
    ("planes", "the fabric has the number of planes that its kind and the NIC ports require"),
    (
        "tiers",
        "the network has as few tiers as can join all NICs, with as many NICs on a leaf as the"
        " plan has, and no more than network.max_tiers",
    ),
    ("levels", "the plan describes each tier once, from the leaves up"),
    (
        "leaf-domains",
        "leaves take turns in the rails of some HB domains only in an existing network, and there"
        " in the rails of this many domains",
    ),
    ("leaf-ports", "the number of leaf ports towards NICs is allowed (docs/network.md)"),
    (
        "uplinks",
        (
            "the uplinks of a leaf fit its ports and the allowed oversubscription, and go to the"
            " switches above in equal bundles, where required"
        ),
    ),
    (
        "pod-ports",
        "the ports of an aggregation switch are divided in an allowed way (docs/network.md)",
    ),
    ("oversubscription", "the oversubscription follows from the ports in use"),
    ("networks", "the number of separate networks is within network.max_networks, if that is set"),
    ("end-to-end", "the oversubscription from leaf to core is within its bound, if one is set"),
    (
        "routing",
        "the routing is that of the instance, or the factor 1 on a single tier, which needs none",
    ),
    (
        "optics",
        (
            "the optics at every level fit the ports, work with each other and reach far enough;"
            " they are those that add least to the objective, unless the plan may choose or the"
            " bill leaves them out"
        ),
    ),
    ("tier-switches", "each level has as many switches as in the network graph"),
    ("tier-ports", "each level has as many ports in use as in the network graph"),
    ("tier-links", "each level has as many links as in the network graph"),
    ("switch-count", "the network has as many switches as the network graph"),
    (
        "transceiver-count",
        (
            "the number of transceivers is that of all link ends of the network graph;"
            " a breakout module that serves several links counts once"
        ),
    ),
    ("radix", "no switch of the network graph has more links than ports"),
    (
        "cages",
        "no switch needs more optical modules than it has cages, if the instance counts cages",
    ),
    (
        "cables",
        (
            "if network.cables = 'hall', cables reach their lengths in the hall, and of one network"
            " add least to the objective within the limits; else no lengths are listed"
        ),
    ),
    (
        "bundles",
        (
            "link bundles are even on the network graph, where required: every spine has equally"
            " many links to each leaf of its plane, and every core to each aggregation switch of"
            " its group"
        ),
    ),
    ("attached", "every NIC has a link to a leaf of the network graph"),
    ("connected", "the network graph connects every pair of GPUs that communicates"),
    (
        "locality",
        (
            "groups whose traffic is timed as staying on a leaf or in a pod do so in the network"
            " graph"
        ),
    ),
    (
        "link-loads",
        (
            "the load of the busiest link, by kind of traffic, is no less than that found by"
            " routing all flows over the network graph (up to 1,024 nodes, even bundles)"
        ),
    ),
    ("route-paths", "every given route is a path in the network, where flows are pinned"),
    (
        "route-flows",
        "every flow between HB domains has a route, and nothing else has one",
    ),
    (
        "route-loads",
        "no link carries more flows than the times of the plan account for",
    ),
    (
        "bill-lines",
        "the bill lists what the design needs of the kinds in objective.include, at the instance's"
        " prices and watts",
    ),
    (
        "bill-products",
        "every line of the bill is its count times its unit price",
    ),
    ("capex", "the capital cost is the sum of the bill"),
    ("power", "the power is the sum of the bill"),
    ("tco", "the total cost includes electricity for all years"),
    *((limit_check(key), f"the limit on {name} holds") for key, (name, _) in LIMITED.items()),
    ("workloads", "the plan trains the workloads of the instance, in order"),
    ("workload-gpus", "the workload uses all training GPUs"),
    ("mapping", "the mapping divides evenly, and the instance allows it"),
    (
        "placement",
        (
            "each parallel degree is split into a factor inside the HB domain and one across, and"
            " the inside factors fill the domain"
        ),
    ),
    (
        "knobs",
        (
            "the plan names every departure from ordinary training, such as partial"
            " synchronisation, late gradients, another schedule than 1F1B or stragglers"
        ),
    ),
    (
        "collectives",
        (
            "the plan names the fastest collective algorithm for each kind of traffic, where"
            " there is a choice"
        ),
    ),
    ("iteration-time", "the iteration time is that of the verifier's own model"),
    ("breakdown", "each part of the iteration time is that of the verifier's own model"),
    (
        "uptime",
        "failures, checkpoints, restarts and goodput are those computed independently",
    ),
    (
        "promise",
        (
            "where a confidence is required, at least about that share of simulated runs finishes"
            " in time"
        ),
    ),
    (
        "bound-time",
        "the time bound is that of the instance, less the time that interruptions take",
    ),
    ("deadline", "the iteration time is within the bound"),
    (
        "time-error",
        "the error that the plan states for a time follows from published runs, or from the error"
        " in the GPU's table",
    ),
    (
        "nearest-runs",
        "the plan names the published runs nearest to it, and how each differs from it",
    ),
    (
        "ties",
        "no mapping that the plan does not name is as fast within the error, at no further cost,"
        " and nearer to published runs",
    ),
    ("outside-measured", "the plan names each of its properties that no compared run has"),
    ("time-margin", "the margin on time is the one that the expected error requires"),
    (
        "routes",
        "routes are stated only where flows are pinned, and slow traffic no less than the best"
        " possible routes do",
    ),
    ("routes-deadline", "the iteration time with these routes is within the bound"),
    ("memory", "the memory of the fullest GPU is that of the verifier's own model"),
    ("memory-capacity", "the memory limit is the capacity of the GPU less its margin"),
    ("memory-fits", "the memory is within that limit"),
    ("mfu", "model FLOPs utilisation is that of the verifier's own model"),
    ("hfu", "hardware FLOPs utilisation is that of the verifier's own model"),
    (
        "mfu-causal",
        "model FLOPs utilisation with causal attention is that of the verifier's own model",
    ),
    ("tokens", "the tokens trained per second follow from batch and iteration time"),
    ("bound", "nothing feasible has a value below the bound, by enumeration of all designs"),
    ("infeasible", "nothing is feasible, by enumeration of all designs"),
    ("tp-inside", "no plan with TP groups inside HB domains is feasible, where the plan says so"),
    ("robust-terms", "the aim and the range of GPU efficiency are those of [robust]"),
    (
        "losses",
        (
            "the plan states correctly what an HB domain loses, how much longer its traffic then"
            " takes, and which bounds then apply"
        ),
    ),
    (
        "survives",
        (
            "after the loss of one NIC, leaf, plane or channel, as far as robust.survive lists it,"
            " some mapping of every workload still meets the bound that then applies"
        ),
    ),
    ("restarted", "the plan states how every workload trains after the loss of a domain"),
    (
        "place-left",
        (
            "after the loss of a domain, the workload fits on the remaining ones and uses no"
            " more GPUs than before"
        ),
    ),
    ("list-value", "the objective at list prices is as stated"),
    (
        "turns",
        (
            "the values of the plan and of the best plan in every price scenario are as stated,"
            " by enumeration where designs are few enough"
        ),
    ),
    (
        "sites",
        "where sites train one model together, they are sites of the instance, none twice; every"
        " other plan with sites states the power of every site in every phase",
    ),
    ("shares", "the sites take all shares of GPUs and batch, at least one each"),
    ("ring", "the links join neighbours in the ring of sites"),
    (
        "channels",
        (
            "no link has more channels than the instance allows; rate, latency, price and power"
            " are the instance's, and modules reach far enough; the network of a site has a link"
            " into the border for each module of its channels there"
        ),
    ),
    ("exchange", "the gradients exchanged between sites are as stated, in bytes and seconds"),
    (
        "site-power",
        (
            "the facility power of a site is what its bill lists there, with any border and half"
            " of each channel that ends there, times PUE"
        ),
    ),
    ("site-power-limit", "the facility power is within the site's supply"),
    (
        "island-size",
        (
            "a network trains on no more GPUs than there are and, where none may be idle, on a"
            " number that the instance lists for it, if it lists any"
        ),
    ),
    ("limit-gpus", "the networks together train on no more GPUs than there are"),
    ("most-products", "the networks together use no more products of a kind than allowed"),
    ("core", "the plan has a core where the instance asks for one, built of the switch it names"),
    ("core-rate", "the ports of the NICs of islands have the rate of the core's ports"),
    (
        "core-links",
        (
            "an island has the links into the core that its GPUs need, in whole modules, equally"
            " many from each leaf, if it has leaves; into the border of a site there may be more"
        ),
    ),
    (
        "core-switches",
        "the core has a port for every link, in whole modules, and no more switches than needed",
    ),
    (
        "core-optic",
        "links into the core use the named or an allowed optic, and it mates with the island's",
    ),
    ("core-power", "the power of the core is that of its switches, 0 where these are not billed"),
    (
        "bound-source",
        (
            "what the bound, or the claim that nothing is feasible, rests on: an enumeration, a"
            " proof or the solver's word"
        ),
    ),
    (
        "tp-inside-source",
        "how it is known that no plan with TP groups inside HB domains is feasible: by an"
        " enumeration, a proof or the solver's word",
    ),
    (
        "panel",
        "direct links are patched through the listed panel that adds least to the objective, if"
        " any is listed",
    ),
    (
        "crossing",
        "pipeline stages that share parameters are in the same or in neighbouring domains",
    ),
    ("grid", "the grid of domains follows from the mapping"),
    ("links", "each bundle joins a different pair of domains, and the bundles add up to the links"),
    (
        "links-bound",
        (
            "the stated least number of links is no more than are built, and no less than"
            " traffic requires"
        ),
    ),
    (
        "link-lengths",
        "the link lengths in the plan belong to a grid of domains that some mapping has",
    ),
    ("link-ports", "no domain has more links than ports"),
    ("link-phases", "the plan routes every kind of traffic that crosses domains"),
    ("link-routes", "routes use existing links and carry everything that is sent"),
    ("link-pace", "a communication phase on direct links is as fast as its busiest link allows"),
    ("rivals", "the plan builds what has the lower value, direct links or switches"),
    (
        "rivals-bound",
        "the bound is the lowest of the plan's value and its bounds for direct links and switches",
    ),
    (
        "rival-bound",
        (
            "no feasible cluster with switches has a value below the plan's bound for switches or"
            " its overall bound"
        ),
    ),
    (
        "rival-none",
        (
            "where the plan says that no cluster with switches is feasible, none is among all"
            " designs"
        ),
    ),
    ("rival-value", "some feasible cluster with switches has the value stated for switches"),
    (
        "cliff",
        "the close alternatives that save money, power or time can be built and are as fast as"
        " stated",
    ),
    (
        "better-number",
        "the suggested batch, degree or number of idle GPUs saves the stated time",
    ),
    ("assumption", "where an assumption fails, training takes as long as the plan states"),
    (
        "next-best",
        (
            "the next best choice can be built and meets the bounds; at the price that is said to"
            " reverse the choice, if any, both cost the same; of several networks one lacks a"
            " product or fabric that it has in the plan"
        ),
    ),
    (
        "runner-up-place",
        "only an optimal plan has runners-up, and it then says why there are no more",
    ),
    ("runner-up-proof", "every runner-up has a gap within the target"),
    (
        "runner-up-distinct",
        "the runners-up differ from the plan and from each other in what is built",
    ),
    (
        "runner-up-bound",
        "every feasible design with a value below a runner-up's bound is listed before it",
    ),
    (
        "runner-up-none-left",
        "where the plan says no other design is left, every feasible design is listed",
    ),
    ("phases", "the plan has the phases of the instance, each with its year"),
    (
        "growth",
        (
            "each phase has the network that the plan states, which grows from that of the phase"
            " before and loses no uplinks (docs/phased.md)"
        ),
    ),
    (
        "bought-lines",
        (
            "a phase lists what it buys at its own prices, with labour for links added to"
            " existing switches"
        ),
    ),
    ("in-place", "everything in use that is billed stands on the bill of its phase or before"),
    (
        "stored",
        "the store of a phase holds what was bought by then and is not in use",
    ),
    ("phase-capex", "the purchase cost of a phase is the sum of its lines"),
    ("phase-power", "the power of a phase is that of everything in use that is billed"),
    ("phase-energy", "a phase pays the electricity of its years, at its own price"),
    (
        "phase-work",
        (
            "the work cost of a phase is labour for what it buys, and support for everything in"
            " use that is billed, over its years"
        ),
    ),
    (
        "phase-years",
        "a phase lasts until the next one; the last lasts for the rest of objective.years",
    ),
    ("phased-bill", "the bill lists what all phases buy, each line with its year"),
    (
        "myopic",
        "where planning each phase on its own is compared, the plan states what it leads to",
    ),
    (
        "myopic-step",
        (
            "in planning each phase on its own, each step adds to the installed parts the least"
            " that its phase needs"
        ),
    ),
    (
        "myopic-end",
        (
            "planning each phase on its own ends with the last phase, or where no network that"
            " keeps what is in use can serve the next"
        ),
    ),
    (
        "myopic-value",
        (
            "the cost of planning each phase on its own is the sum of its steps, and the saving"
            " is its difference from the plan"
        ),
    ),
    (
        "place",
        (
            "a network stands at one site of the instance, if the instance has sites, in every"
            " phase since its first"
        ),
    ),
    (
        "part-losses",
        "the plan says of each network that trains a workload what the listed losses do to it",
    ),
    (
        "cheapest-orders",
        (
            "everything in use that is billed is bought at the least cost, over all phases and"
            " at their volume prices, if any"
        ),
    ),
)

NAMES: frozenset[str] = frozenset(name for name, _ in CHECKS)
