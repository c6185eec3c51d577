mkdir $OUT/x && $SAMEBITS import debug_a_file_7_tp1.safetensors $OUT/x/a --level digest && $SAMEBITS import debug_b_file_7_tp1.safetensors $OUT/x/b --level digest && $SAMEBITS plan $OUT/x/a $OUT/x/b
