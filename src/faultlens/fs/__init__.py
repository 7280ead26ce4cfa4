"""Files: who may read them, how they are replaced in one step, where ours lie."""
