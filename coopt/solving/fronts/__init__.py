"""The least cost for every pace of training."""
