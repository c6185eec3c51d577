# The layers and their arrows. Each src/ folder is one target, its link line is its list of arrows, and
# tools/check_layers.py reads the same table to catch an #include that slips past.
#   layer: folders under src/ it may use directly (its own folder is implied)
set(SB_ARROWS
  "base:"
  "numerics:base"
  "tensor:base,numerics"
  "store:base,numerics,tensor"
  "trace:base,numerics,tensor,store"
  "device:base,numerics,tensor"
  "ops:base,numerics,tensor,device"
  "tokenizer:base"
  "model:base,numerics,tensor,store,trace,ops,tokenizer,device"
  "engine:base,numerics,tensor,store,trace,ops,tokenizer,model,device"
  "forensics:base,numerics,tensor,store,trace,ops"
  "prove:base,numerics,tensor,store,trace,ops,tokenizer,model,engine,forensics,device"
  "server:base,numerics,tensor,store,trace,tokenizer,model,engine"
  "cli:base,numerics,tensor,store,trace,ops,tokenizer,model,engine,forensics,prove,server,device")

# sb_layer(NAME DEPS ... [SOURCES ...]): static library sb_NAME from src/NAME/*.cc (and one level of subfolders), less
# *_test.cc and *_bench.cc, plus one ctest entry per *_test.cc (not *_long_test.cc: those are run by hand).
function(sb_layer name)
  cmake_parse_arguments(A "" "" "DEPS;EXCLUDE" ${ARGN})
  file(GLOB all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz|main)\\.cc$")
  foreach(e ${A_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "${e}")
  endforeach()
  if(sources)
    add_library(sb_${name} STATIC ${sources})
    target_link_libraries(sb_${name} PUBLIC sb_flags ${A_DEPS})
  else()
    add_library(sb_${name} INTERFACE)
    target_link_libraries(sb_${name} INTERFACE sb_flags ${A_DEPS})
  endif()
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_long_test\\.cc$")
  foreach(t ${tests})
    sb_test(${t} sb_${name})
  endforeach()
endfunction()

# The layers whose tests also run under AddressSanitizer: the parsers and the CPU ops. `asan_tests` builds just these.
set(SB_ASAN_LAYERS base numerics tensor store tokenizer trace forensics ops)
add_custom_target(asan_tests)

# sb_test(FILE LIBS...): one GoogleTest program per *_test.cc, one ctest entry of the same name. The time limit is there
# so that a hang ends: it is many times what the slowest test needs on two busy cores.
function(sb_test file)
  if(NOT SB_TESTS)
    return()
  endif()
  get_filename_component(stem ${file} NAME_WE)
  add_executable(${stem} ${file})
  target_link_libraries(${stem} PRIVATE ${ARGN} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${stem} PRIVATE SB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${stem} COMMAND ${stem})
  set_tests_properties(${stem} PROPERTIES TIMEOUT 900)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE relative)
  string(REGEX REPLACE "/.*" "" layer "${relative}")
  if(layer IN_LIST SB_ASAN_LAYERS)
    set_tests_properties(${stem} PROPERTIES LABELS asan)
    add_dependencies(asan_tests ${stem})
  endif()
endfunction()

# sb_simd(TARGET FILE...): compiles each FILE (named *_simd.cc) once per instruction set into TARGET. The file defines
# its functions in namespace samebits::SB_ISA and nothing with external linkage outside it.
function(sb_simd target)
  foreach(file ${ARGN})
    get_filename_component(stem ${file} NAME_WE)
    foreach(isa ${SB_ISAS})
      add_library(${stem}_${isa} OBJECT ${file})
      target_link_libraries(${stem}_${isa} PRIVATE sb_flags)
      target_compile_options(${stem}_${isa} PRIVATE ${SB_ISA_FLAGS_${isa}})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${stem}_${isa}>)
    endforeach()
  endforeach()
endfunction()

# sb_op(NAME): one op = one folder, found by stem (doc/adding_an_op.md):
#   NAME.cc NAME_ref.cc ...           -> sb_NAME_ref: contract, argument checks and reference; no backend
#   NAME_cpu.cc NAME_simd.cc          -> sb_NAME: dispatch and CPU backend
#   NAME_test.cc NAME_bench.cc        -> one program each
# CUDA files (*.cu) are collected by src/device/CMakeLists.txt.
function(sb_op name)
  cmake_parse_arguments(A "" "" "DEPS" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB refs CONFIGURE_DEPENDS ${dir}/*_ref.cc ${dir}/*_args.cc)
  if(NOT refs)  # contract only, not written yet
    add_library(sb_${name}_ref INTERFACE)
    add_library(sb_${name} INTERFACE)
    return()
  endif()
  add_library(sb_${name}_ref STATIC ${refs})
  set(ref_deps)
  set(op_deps)
  foreach(d ${A_DEPS})
    list(APPEND ref_deps sb_${d}_ref)
    list(APPEND op_deps sb_${d})
  endforeach()
  target_link_libraries(sb_${name}_ref PUBLIC sb_flags sb_tensor ${ref_deps})
  file(GLOB cpu CONFIGURE_DEPENDS ${dir}/*.cc)
  list(FILTER cpu EXCLUDE REGEX "_(test|bench|ref|args|simd)\\.cc$")
  file(GLOB simd CONFIGURE_DEPENDS ${dir}/*_simd.cc)
  add_library(sb_${name} STATIC ${cpu})
  target_link_libraries(sb_${name} PUBLIC sb_${name}_ref sb_ops_common ${op_deps})
  sb_simd(sb_${name} ${simd})
  file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cc)
  foreach(t ${tests})
    sb_test(${t} sb_${name})
  endforeach()
  file(GLOB benches CONFIGURE_DEPENDS ${dir}/*_bench.cc)
  foreach(b ${benches})
    get_filename_component(stem ${b} NAME_WE)
    if(SB_BENCH)
      add_executable(${stem} ${b})
      target_link_libraries(${stem} PRIVATE sb_${name})
    endif()
  endforeach()
endfunction()
