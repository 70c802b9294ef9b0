"""What the paper on ordered streams claims, held against the model of the engine."""
