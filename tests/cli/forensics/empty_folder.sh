mkdir $OUT/e && $SAMEBITS diff $OUT/e $OUT/e
