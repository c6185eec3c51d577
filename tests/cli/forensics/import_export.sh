$SAMEBITS import debug_a_file_7_tp1.safetensors $OUT/r && $SAMEBITS show $OUT/r && $SAMEBITS export $OUT/r $OUT/e && ls $OUT/e && $SAMEBITS import $OUT/e $OUT/r2 && $SAMEBITS diff -q $OUT/r $OUT/r2
