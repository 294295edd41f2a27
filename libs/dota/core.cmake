# The game core and its Python module, for the whole project and for the environment's own wheel.
option(FIVE_SANITIZE "Build with address and undefined-behaviour sanitizers" OFF)
# Indices are signed and containers take unsigned ones: with assertions the standard library stops at one out of range.
set(FIVE_SANITIZE_COMPILE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1
    -D_GLIBCXX_ASSERTIONS)
option(FIVE_LTO "Link-time optimisation" ON)
set(FIVE_PROFILE "" CACHE STRING "Profile-guided optimisation: record builds a core that writes a profile, use compiles with it")
set(FIVE_PROFILE_DIR "${CMAKE_BINARY_DIR}/profile" CACHE PATH "Folder of the profile")
set(FIVE_ARCH "" CACHE STRING "Target CPU, as for -march: x86-64-v3, native")
# The CPU that a wheel will run on is unknown: it has a second core, which newer CPUs load instead of the first.
if(SKBUILD AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(FIVE_ALSO_FOR_DEFAULT x86-64-v3)
endif()
set(FIVE_ALSO_FOR "${FIVE_ALSO_FOR_DEFAULT}" CACHE STRING "Target CPU of a second core, which is selected at import: x86-64-v3 or empty")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
# Without NDEBUG: a broken invariant of the simulation must not pass silently.
set(CMAKE_CXX_FLAGS_RELEASE "-O3")

find_package(Threads REQUIRED)

# The game core without Python: all sources but the bindings.
file(GLOB_RECURSE DOTA_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/core/*.cpp)
list(FILTER DOTA_SOURCES EXCLUDE REGEX "/core/bindings/")
# Only a core of the same sources can read a snapshot. This is their fingerprint.
set(DOTA_CORE ${CMAKE_CURRENT_LIST_DIR}/core)
file(GLOB_RECURSE DOTA_HEADERS CONFIGURE_DEPENDS ${DOTA_CORE}/*.hpp)
set(DOTA_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${DOTA_GENERATED}/core_sources.hpp
                   COMMAND ${CMAKE_COMMAND} -DROOT=${DOTA_CORE} -DOUT=${DOTA_GENERATED}/core_sources.hpp
                           -P ${DOTA_CORE}/sources.cmake
                   DEPENDS ${DOTA_SOURCES} ${DOTA_HEADERS} ${DOTA_CORE}/sources.cmake)
add_custom_target(dota_core_sources DEPENDS ${DOTA_GENERATED}/core_sources.hpp)

if(FIVE_PROFILE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "FIVE_PROFILE (make build PGO=1) needs gcc, the compiler is ${CMAKE_CXX_COMPILER_ID}: set CXX=g++")
endif()
if(FIVE_PROFILE AND NOT FIVE_PROFILE MATCHES "^(record|use)$")
  message(FATAL_ERROR "FIVE_PROFILE \"${FIVE_PROFILE}\": allowed are record, use and empty")
endif()
if(FIVE_PROFILE AND FIVE_ALSO_FOR)
  message(FATAL_ERROR "FIVE_PROFILE is for one core, FIVE_ALSO_FOR adds a second one: leave one of them empty")
endif()
if(FIVE_LTO AND NOT FIVE_SANITIZE AND NOT FIVE_PROFILE STREQUAL "record")
  include(CheckIPOSupported)
  check_ipo_supported(RESULT FIVE_LTO_WORKS OUTPUT FIVE_LTO_OUTPUT LANGUAGES CXX)
  if(NOT FIVE_LTO_WORKS)
    message(STATUS "Without link-time optimisation, which this compiler lacks: ${FIVE_LTO_OUTPUT}")
  endif()
endif()

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT
                RESULT_VARIABLE nanobind_missing)
if(nanobind_missing)
  message(FATAL_ERROR "nanobind is not installed for ${Python_EXECUTABLE}: run `${Python_EXECUTABLE} -m pip install nanobind`")
endif()
find_package(nanobind CONFIG REQUIRED)

# Add the game core as the library `library` for the CPU `arch` (empty: any).
function(add_core_library library arch)
  add_library(${library} STATIC ${DOTA_SOURCES})
  add_dependencies(${library} dota_core_sources)
  target_include_directories(${library} PRIVATE ${DOTA_GENERATED})
  target_include_directories(${library} PUBLIC ${DOTA_CORE})
  target_link_libraries(${library} PUBLIC Threads::Threads)
  # No contraction: state hashes must not depend on the compiler's use of fused multiply-adds.
  target_compile_options(${library} PUBLIC -ffp-contract=off)
  target_compile_options(${library} PRIVATE -Wall -Wextra)
  # This changes no result: nothing reads errno or the floating-point exception flags.
  target_compile_options(${library} PRIVATE -fno-math-errno -fno-trapping-math)
  # These headers took four fifths of the compile time.
  target_precompile_headers(${library} PRIVATE <algorithm> <cmath> <string> <vector> ${DOTA_CORE}/world/world.hpp
                            ${DOTA_CORE}/map/map_data.hpp ${DOTA_CORE}/effects/program_node.hpp)
  if(arch)
    target_compile_options(${library} PRIVATE -march=${arch})
  endif()
  if(FIVE_PROFILE STREQUAL "record")
    # tools/record_profile.py runs one thread; atomic counters would be slower.
    target_compile_options(${library} PRIVATE -fprofile-generate=${FIVE_PROFILE_DIR} -fprofile-update=single)
    target_link_options(${library} INTERFACE -fprofile-generate=${FIVE_PROFILE_DIR})
  elseif(FIVE_PROFILE STREQUAL "use")
    # Code that the recording did not run (a hero, an item) is compiled as without a profile, not for size.
    target_compile_options(${library} PRIVATE -fprofile-use=${FIVE_PROFILE_DIR} -fprofile-partial-training
                           -fprofile-correction -Wno-missing-profile)
  endif()
  if(FIVE_LTO_WORKS)
    set_property(TARGET ${library} PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
  endif()
  if(FIVE_SANITIZE)
    target_compile_options(${library} PUBLIC ${FIVE_SANITIZE_COMPILE})
    target_link_options(${library} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

file(GLOB DOTA_BINDINGS CONFIGURE_DEPENDS ${DOTA_CORE}/bindings/*.cpp)

# Add the Python module dota._core of `library` as the target `module`, in `folder` of the package.
function(add_core_module module library folder)
  if(FIVE_SANITIZE)
    set(symbols NOSTRIP)  # Reports need symbols to name functions and lines.
  endif()
  nanobind_add_module(${module} NB_STATIC NOMINSIZE ${symbols} ${DOTA_BINDINGS})
  set_target_properties(${module} PROPERTIES OUTPUT_NAME _core
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder})
  target_link_libraries(${module} PRIVATE ${library})
  if(FIVE_LTO_WORKS)
    # The bindings are compiled without it, which would only make the build slower.
    target_link_options(${module} PRIVATE ${CMAKE_CXX_LINK_OPTIONS_IPO} ${CMAKE_CXX_COMPILE_OPTIONS_IPO})
    # gcc 12 has false warnings for `text + string` (gcc bug 105329).
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_link_options(${module} PRIVATE -Wno-stringop-overflow)
    endif()
  endif()
  target_compile_options(${module} PRIVATE -Wall -Wextra)
  target_precompile_headers(${module} PRIVATE <nanobind/nanobind.h> <nanobind/ndarray.h> <nanobind/stl/optional.h>
                            <nanobind/stl/pair.h> <nanobind/stl/string.h> <nanobind/stl/vector.h>
                            ${DOTA_CORE}/vec/vec_game.hpp)
  install(TARGETS ${module} LIBRARY DESTINATION dota/${folder} COMPONENT core)
endfunction()

add_core_library(dota_core "${FIVE_ARCH}")
add_core_module(_core dota_core "")
if(FIVE_ALSO_FOR)
  # dota/processor.py looks for it in the folder of that name.
  add_core_library(dota_core_newer "${FIVE_ALSO_FOR}")
  add_core_module(_core_newer dota_core_newer "${FIVE_ALSO_FOR}")
endif()
