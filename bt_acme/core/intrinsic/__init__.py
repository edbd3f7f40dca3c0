"""Intrinsic rewards, their networks and their episodic memory."""
