$SAMEBITS diff a.safetensors b.safetensors --filter nosuchname -q
