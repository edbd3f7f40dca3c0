"""Acting: policies, actors and the inference server."""
