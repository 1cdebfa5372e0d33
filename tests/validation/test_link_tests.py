"""Results of nccl-tests become shares of the links they ran on."""

import json

import pytest

from coopt.instance.texts import InstanceError
from coopt.validation.link_tests import MOVED, link_fit_of

HEAD = "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"


def output(operation="all_reduce", n=16, gbyte_s=45.0, start_s=0.0, hosts=0, named=True):
    """What nccl-tests prints where every byte of an operation takes its share of a rate."""
    moved, redop = MOVED[operation](n), "sum" if "reduce" in operation else "none"
    text = f"# Collective test starting: {operation}_perf\n" if named else ""
    for rank in range(n if hosts else 1):
        host = f"node-{rank * hosts // n}"
        text += f"#  Rank {rank:2d} Group  0 Pid 1 on {host} device {rank} [0000:18:00] NVIDIA H100 80GB HBM3\n"
    text += HEAD
    for size in (2**10, 2**20, 2**30, 2**34):
        seconds = start_s + size * moved / (gbyte_s * 1e9)
        rate = size / seconds / 1e9
        text += f"{size} {size // 4} float {redop} -1 {seconds * 1e6:.4f} {rate:.4f} {rate * moved:.4f} 0 1 1 1 0\n"
    return text


def document(operation="all_reduce", n=16, each=1, **changes):
    """What nccl-tests 2.19 writes with `-J`; a process lists the first of its GPUs."""
    rows = [line.split() for line in output(operation, n).splitlines() if line[0].isdigit()]
    names = ("time", "alg_bw", "bus_bw")
    results = [
        {"size": int(row[0]), "redop": row[3], "out_of_place": dict(zip(names, map(float, row[5:8]), strict=True))}
        for row in rows
    ]
    devices = [{"hostname": f"node-{rank // 8}", "device_info": "NVIDIA H100 80GB HBM3"} for rank in range(0, n, each)]
    table = {
        "version": 3, "args": [f"./build/{operation}_perf", "-g", f"{each}"], "nccl_version": 22805,
        "config": {"nthreads": 1, "ngpus": each, "devices": devices}, "results": results, "out_of_bounds": {"count": 0},
    }  # fmt: skip
    return json.dumps(table | changes)


@pytest.mark.parametrize("changed", ["json", "json of 8 GPUs a process", "columns", "cputime", "prefix", "in place"])
def test_every_form_of_late_2026_is_read(changed):
    text = output(hosts=2)
    rows = [line for line in text.splitlines() if line[0].isdigit()]
    forms = {
        "json": document(),
        "json of 8 GPUs a process": document(each=8),
        "columns": text.replace(" 0 1 1 1 0\n", " 0 9.1 9.9 9.8 1.2 1 1 1 N/A 9.1 9.9 9.8 1.2 2026-08-22 15:01:11\n"),
        "cputime": text.replace("  time ", "cputime"),
        "prefix": "".join(f"[1,0]<stdout>: {line}\n" for line in text.splitlines()),
        "in place": text.replace(rows[0], rows[0].replace(" -1 ", " -1" + 40 * " ")),
    }
    assert link_fit_of(forms[changed], "mine", {}) == link_fit_of(text, "mine", {})


@pytest.mark.parametrize(
    ("operation", "n", "hosts", "gbyte_s", "parameter", "share"),
    [
        ("all_reduce", 8, 1, 405.0, "hb_reduce", 0.9 * 7.45 / 7),  # a rank copies 0.45 of its own as well
        ("all_gather", 8, 0, 360.0, "hb", 0.8 * 7.45 / 7),
        ("all_reduce", 32, 4, 360.0, "rail", 0.9),  # eight NICs of 50 GB/s side by side
        ("reduce_scatter", 16, 0, 320.0, "rail", 0.8),
        ("alltoall", 16, 2, 40.0, "rail", 0.8 * 8 / 15),
        ("sendrecv", 2, 2, 46.0, "send", 0.92),
    ],
)
def test_a_collective_tells_the_share_of_its_links(operation, n, hosts, gbyte_s, parameter, share):
    link = link_fit_of(output(operation, n, gbyte_s, hosts=hosts), "mine.log", {})
    assert (link.parameter, link.ranks, link.why) == (parameter, n, "")
    assert link.after == pytest.approx(share, rel=0.01)
    assert link.latency_s is None


def test_small_sizes_tell_the_start_up_time():
    link = link_fit_of(output("all_gather", 8, 360.0, start_s=2e-5), "mine.log", {})
    assert link.latency_s == pytest.approx(2e-5, rel=0.01)


@pytest.mark.parametrize(
    ("text", "stated", "complaint"),
    [
        (output("all_gather", named=False), {}, "collective is not printed, needs one of all_reduce"),
        (output().replace("1024 256", "9024 256"), {}, r"line \d: 9024 bytes in"),
        (HEAD + "1024 256 float sum -1 1.5.3 187.97 364.19 0\n", {}, "no result with a time"),
        (output(n=16, hosts=2).replace("Rank 15", "Rnk 15"), {}, "15 listed ranks"),
        (output(n=1, start_s=1e-5), {}, "several GPUs"),
        (output(), {"gpu": "H999"}, "H999 is not known from measured runs"),
        (output(), {"gpus_per_node": "5"}, "16 ranks in domains of 5"),
        (output() + "# Out of bounds values : 3 FAILED\n", {}, "3 values out of bounds"),
        (output() + output("all_gather"), {}, "all_gather and all_reduce, needs a file for each"),
        (output().replace("all_reduce_perf", "alltoallv_perf"), {}, "alltoallv does not show .*, needs all_"),
        (document()[:-9], {}, "mine.log: the JSON of nccl-tests cannot be read"),
        (document(out_of_bounds={"count": float("inf")}), {}, "cannot convert float infinity"),
        (document().replace('"size": 1024', '"size": NaN'), {}, "size nan"),
        (document().replace('"ngpus": 1', '"ngpus": 99999999'), {}, "nthreads x ngpus x devices = 1"),
        (document().replace('"redop": "sum"', '"redop": ["sum"]'), {}, "size 1024"),
        (document(config=7), {}, "not subscriptable"),
        (document(results=[{"size": 8}]), {}, "lacks 'out_of_place', needs a whole file"),
    ],
)
def test_output_that_does_not_add_up_is_refused(text, stated, complaint):
    with pytest.raises(InstanceError, match=complaint):
        link_fit_of(text, "mine.log", stated)


def test_a_rate_above_the_link_is_not_offered():
    assert "outside the plausible range" in link_fit_of(output(n=32, gbyte_s=900.0), "mine.log", {}).why
