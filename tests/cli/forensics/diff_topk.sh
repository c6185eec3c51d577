$SAMEBITS diff --topk debug_a_file_7_tp1.safetensors debug_b_file_7_tp1.safetensors
