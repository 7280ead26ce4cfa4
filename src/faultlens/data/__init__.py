"""Training data: what is wrong with it (`faultlens scan`), and pipelines that go round it."""
