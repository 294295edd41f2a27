# The agent's native code as the Python module five.native._native. It shares no source with the game core.
# libs/dota/core.cmake sets the options and finds nanobind.
set(FIVE_NATIVE ${CMAKE_CURRENT_LIST_DIR}/core)
file(GLOB_RECURSE FIVE_NATIVE_SOURCES CONFIGURE_DEPENDS ${FIVE_NATIVE}/*.cpp)

if(FIVE_SANITIZE)
  set(symbols NOSTRIP)
endif()
nanobind_add_module(_native NB_STATIC NOMINSIZE ${symbols} ${FIVE_NATIVE_SOURCES})
target_include_directories(_native PRIVATE ${FIVE_NATIVE})
target_link_libraries(_native PRIVATE Threads::Threads)
# Contraction is off so that sums and products round the same with every compiler.
target_compile_options(_native PRIVATE -Wall -Wextra -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_precompile_headers(_native PRIVATE <algorithm> <cstdint> <string> <vector> <nanobind/nanobind.h> <nanobind/ndarray.h>)
# A wheel needs one build only: hot functions are compiled for several instruction sets and selected at run time.
if(FIVE_ARCH)
  target_compile_options(_native PRIVATE -march=${FIVE_ARCH})
endif()
if(FIVE_LTO_WORKS)
  set_property(TARGET _native PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
endif()
if(FIVE_SANITIZE)
  target_compile_options(_native PRIVATE ${FIVE_SANITIZE_COMPILE})
  target_link_options(_native PRIVATE -fsanitize=address,undefined)
endif()
install(TARGETS _native LIBRARY DESTINATION five/native COMPONENT core)
