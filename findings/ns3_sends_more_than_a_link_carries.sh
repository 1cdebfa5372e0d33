#!/usr/bin/env bash
# A link of 1.6 Tbit/s carries 1.71 Tbit/s in ns-3, and one of 800 Gbit/s 683.
#
# Versions   ns3==3.44.post0 (ns-3.44 with its Python module, which needs the headers of a C++ compiler)
# Expected   A point-to-point link that is offered twice its rate carries its rate, whatever the size of packets, as one
#            of 100 Gbit/s with packets of 1,500 bytes does.
# Behaviour  Time is whole nanoseconds unless it is set otherwise, and the time to send a packet is rounded to them: 7
#            for the 7.5 of 1,500 bytes at 1.6 Tbit/s, 3 for the 2.56 of 256 bytes at 800 Gbit/s. Errors of rates are
#            those of one packet, and of either sign by its size. Nothing is said. Time.SetResolution(Time.PS) before
#            anything else gives the rate for all.
# Output seen, Gbit/s that arrive
#   100 Gbit/s, packets of 1500 bytes: 100 in ns, 100 in ps
#   400 Gbit/s, packets of 256 bytes: 409 in ns, 400 in ps
#   800 Gbit/s, packets of 256 bytes: 683 in ns, 800 in ps
#   1600 Gbit/s, packets of 1000 bytes: 1600 in ns, 1600 in ps
#   1600 Gbit/s, packets of 1500 bytes: 1714 in ns, 1600 in ps
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ns3==3.44.post0
cat >"$folder/seen.py" <<'PYTHON'
import sys

from ns import ns

MICROSECONDS = 20
HEADERS = 30  # bytes of UDP, IPv4 and PPP
PORT = 9

if sys.argv[1] == "ps":
    ns.Time.SetResolution(ns.Time.PS)


def arriving(gbit_s, size):
    """Gbit/s on the link, of packets of so many bytes with their headers, when twice its rate is offered."""
    nodes = ns.NodeContainer()
    nodes.Create(2)
    link = ns.PointToPointHelper()
    link.SetDeviceAttribute("DataRate", ns.StringValue(f"{gbit_s}Gbps"))
    link.SetChannelAttribute("Delay", ns.StringValue("1us"))
    devices = link.Install(nodes)
    ns.InternetStackHelper().Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.1.1.0"), ns.Ipv4Mask("255.255.255.0"))
    there = ns.InetSocketAddress(addresses.Assign(devices).GetAddress(1), PORT).ConvertTo()
    sinks = ns.PacketSinkHelper("ns3::UdpSocketFactory", there).Install(nodes.Get(1))
    sinks.Start(ns.Seconds(0))
    source = ns.OnOffHelper("ns3::UdpSocketFactory", there)
    source.SetConstantRate(ns.DataRate(f"{2 * gbit_s}Gbps"), size - HEADERS)
    sources = source.Install(nodes.Get(0))
    sources.Start(ns.Seconds(0))
    ns.Simulator.Stop(ns.MicroSeconds(MICROSECONDS + 1))  # the first packet takes 1 us
    ns.Simulator.Run()
    packets = sinks.Get(0).GetTotalRx() / (size - HEADERS)
    ns.Simulator.Destroy()
    return packets * size * 8 / MICROSECONDS / 1e3


for gbit_s, size in ((100, 1500), (400, 256), (800, 256), (1600, 1000), (1600, 1500)):
    print(f"{gbit_s} Gbit/s, packets of {size} bytes:{arriving(gbit_s, size):.0f}", flush=True)
PYTHON
cd "$folder"
for unit in ns ps; do ./venv/bin/python seen.py $unit 2>/dev/null >$unit.txt; done
paste -d: ns.txt <(cut -d: -f2 ps.txt) | sed -E 's/:([0-9]+):([0-9]+)$/: \1 in ns, \2 in ps/' >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
100 Gbit/s, packets of 1500 bytes: 100 in ns, 100 in ps
400 Gbit/s, packets of 256 bytes: 409 in ns, 400 in ps
800 Gbit/s, packets of 256 bytes: 683 in ns, 800 in ps
1600 Gbit/s, packets of 1000 bytes: 1600 in ns, 1600 in ps
1600 Gbit/s, packets of 1500 bytes: 1714 in ns, 1600 in ps
SEEN
