$SAMEBITS diff a.safetensors b.safetensors --jsonl
