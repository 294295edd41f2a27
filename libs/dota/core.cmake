# The game core and its Python module: for the whole project's build and for the environment's wheel alone.
option(FIVE_SANITIZE "Build the core with address and undefined-behaviour sanitizers" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
# NDEBUG stays out of it: a broken invariant of the simulation must not pass silently.
set(CMAKE_CXX_FLAGS_RELEASE "-O3")

find_package(Threads REQUIRED)

# The game core, without Python: every source but the bindings.
file(GLOB_RECURSE DOTA_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/core/*.cpp)
list(FILTER DOTA_SOURCES EXCLUDE REGEX "/core/bindings/")
add_library(dota_core STATIC ${DOTA_SOURCES})
# A snapshot is of use to a core of the same sources only: their fingerprint, rewritten when one changes.
set(DOTA_CORE ${CMAKE_CURRENT_LIST_DIR}/core)
file(GLOB_RECURSE DOTA_HEADERS CONFIGURE_DEPENDS ${DOTA_CORE}/*.hpp)
set(DOTA_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${DOTA_GENERATED}/core_sources.hpp
                   COMMAND ${CMAKE_COMMAND} -DROOT=${DOTA_CORE} -DOUT=${DOTA_GENERATED}/core_sources.hpp
                           -P ${DOTA_CORE}/sources.cmake
                   DEPENDS ${DOTA_SOURCES} ${DOTA_HEADERS} ${DOTA_CORE}/sources.cmake)
target_sources(dota_core PRIVATE ${DOTA_GENERATED}/core_sources.hpp)
target_include_directories(dota_core PRIVATE ${DOTA_GENERATED})
target_include_directories(dota_core PUBLIC ${CMAKE_CURRENT_LIST_DIR}/core)
target_link_libraries(dota_core PUBLIC Threads::Threads)
# Contraction is off so that a game's state hash does not depend on the compiler's use of fused operations.
target_compile_options(dota_core PUBLIC -ffp-contract=off)
target_compile_options(dota_core PRIVATE -Wall -Wextra)
# No result changes by it: errno is not looked at, nor are the processor's floating-point flags.
target_compile_options(dota_core PRIVATE -fno-math-errno -fno-trapping-math)
# Four fifths of the time a source took to compile went into these headers.
target_precompile_headers(dota_core PRIVATE <algorithm> <cmath> <string> <vector>
                          ${CMAKE_CURRENT_LIST_DIR}/core/world/systems.hpp
                          ${CMAKE_CURRENT_LIST_DIR}/core/map/map_data.hpp
                          ${CMAKE_CURRENT_LIST_DIR}/core/effects/program_node.hpp)
if(FIVE_SANITIZE)
  target_compile_options(dota_core PUBLIC -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer -g -O1)
  target_link_options(dota_core PUBLIC -fsanitize=address,undefined)
endif()

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT
                RESULT_VARIABLE nanobind_missing)
if(nanobind_missing)
  message(FATAL_ERROR "nanobind is not installed for ${Python_EXECUTABLE}: run `${Python_EXECUTABLE} -m pip install nanobind`")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB DOTA_BINDINGS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/core/bindings/*.cpp)
nanobind_add_module(_core NB_STATIC NOMINSIZE ${DOTA_BINDINGS})
target_link_libraries(_core PRIVATE dota_core)
target_compile_options(_core PRIVATE -Wall -Wextra)
target_precompile_headers(_core PRIVATE <nanobind/nanobind.h> <nanobind/ndarray.h> <nanobind/stl/optional.h>
                          <nanobind/stl/pair.h> <nanobind/stl/string.h> <nanobind/stl/vector.h>
                          ${CMAKE_CURRENT_LIST_DIR}/core/vec/vec_game.hpp)

install(TARGETS _core LIBRARY DESTINATION dota COMPONENT core)
