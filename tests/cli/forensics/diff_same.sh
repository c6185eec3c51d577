$SAMEBITS diff a.safetensors a.safetensors
