$SAMEBITS show a.safetensors
