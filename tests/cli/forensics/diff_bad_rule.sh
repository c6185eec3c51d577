$SAMEBITS diff a.safetensors b.safetensors --rule "w:approximately"
