# Finds the CUDA toolkit, if SB_CUDA asks for it, and sets how every .cu file is compiled. Leaves SB_CUDA_FOUND set.
# CMake 3.25 does not know how nvcc 13 spells C++20, so it is told here and -std=c++20 is also passed by hand.
set(SB_CUDA_FOUND OFF)
if(SB_CUDA)
  find_program(SB_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(SB_NVCC)
    set(CMAKE_CUDA_COMPILER ${SB_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES OFF)
    enable_language(CUDA)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(SB_CUDA_FOUND ON)
  else()
    message(STATUS "No CUDA toolkit (nvcc) found: the GPU plugin samebits_cuda is left out, everything else is built.")
  endif()
endif()

# Real machine code for each family, PTX for the newest. Files named *_sm90*.cu use instructions only sm_90a has.
set(SB_CUDA_ARCHS "80;90a;100;120" CACHE STRING "architectures of the kernels that need no Hopper instruction")
set(SB_CUDA_FLAGS -std=c++20 --expt-relaxed-constexpr -DNDEBUG -Xcompiler=-fvisibility=hidden
                  ${SB_NUMERIC_CUDA_FLAGS})

# sb_cuda_sources(FILE...): sets the flags of each .cu file, the architectures by its name.
function(sb_cuda_sources)
  foreach(file ${ARGN})
    set(gencode)
    if(file MATCHES "_sm90[^/]*\\.cu$")
      set(gencode -gencode=arch=compute_90a,code=sm_90a)
    else()
      foreach(a ${SB_CUDA_ARCHS})
        list(APPEND gencode -gencode=arch=compute_${a},code=sm_${a})
      endforeach()
    endif()
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${SB_CUDA_FLAGS};${gencode}")
  endforeach()
endfunction()
