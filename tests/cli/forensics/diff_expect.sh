$SAMEBITS diff a.safetensors a.safetensors -q --expect 100
