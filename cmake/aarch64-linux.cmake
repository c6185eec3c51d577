# Cross build for 64-bit Arm, tests under emulation (Debian: g++-aarch64-linux-gnu qemu-user libgtest-dev). Only what the
# numerics and the ops need exists for the other machine, so name the targets:
#   cmake -S /usr/src/googletest -B build/gtest-arm -G Ninja -DBUILD_GMOCK=OFF \
#         -DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64-linux.cmake -DCMAKE_INSTALL_PREFIX=$PWD/build/gtest-arm/install
#   ninja -C build/gtest-arm install
#   cmake --preset cpu -B build/arm --toolchain cmake/aarch64-linux.cmake \
#         -DGTest_DIR=$PWD/build/gtest-arm/install/lib/cmake/GTest
#   ninja -C build/arm gemm_test topk_test && ctest --test-dir build/arm -R 'gemm_test|topk_test'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
