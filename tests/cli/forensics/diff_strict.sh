$SAMEBITS diff a.safetensors b.safetensors --window 2 --hist
