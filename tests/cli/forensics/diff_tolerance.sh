$SAMEBITS diff a.safetensors b.safetensors --rtol 1e-3 --filter "^(w|same|zero)$"
