"""How is a job of a plan started? Files for launchers and for Megatron-LM."""
