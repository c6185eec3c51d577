$SAMEBITS diff a.safetensors nosuch.safetensors
