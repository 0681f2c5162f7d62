"""The studio without its page: takes, the store they are kept in, and the way from a request to sound.

Nothing here imports gradio; the page lives in ``studio.ui``.
"""
