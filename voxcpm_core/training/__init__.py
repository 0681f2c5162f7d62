"""Training of VoxCPM models: adapters, every weight, or the embedded nano model. See docs/training.md.

    python -m voxcpm_core.training --help

Nothing of this is imported by inference.
"""
