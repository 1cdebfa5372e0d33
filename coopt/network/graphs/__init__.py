"""Networks of plans as graphs: every GPU, NIC, switch and link, or one plane that stands for all."""
