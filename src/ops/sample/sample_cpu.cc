// The reference is the implementation (sample_ref.cc); this file exists so that the op links like the others.
#include "ops/sample/sample.h"
