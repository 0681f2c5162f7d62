"""How the embedded model `nano` is made: corpus, latents, AudioVAE, language model, checkpoint, measurements."""
