$SAMEBITS diff a.safetensors b.safetensors --policy set --rule "i|gone|new|zero:skip" --rule "w:ulp=1"
