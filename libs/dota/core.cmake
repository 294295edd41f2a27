# The game core and its Python module: for the whole project's build and for the environment's wheel alone.
option(FIVE_SANITIZE "Build the core with address and undefined-behaviour sanitizers" OFF)
set(FIVE_SANITIZE_COMPILE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1)
option(FIVE_LTO "Optimise the core across its sources, while it is linked" ON)
set(FIVE_PROFILE "" CACHE STRING "record: a core that writes how often its code runs; use: one compiled by such a record")
set(FIVE_PROFILE_DIR "${CMAKE_BINARY_DIR}/profile" CACHE PATH "Where the record lies")
set(FIVE_ARCH "" CACHE STRING "A processor the core may demand, as -march takes it: x86-64-v3, native")
# A wheel does not know where it will run: it holds a second core, which newer processors load in place of the first.
if(SKBUILD AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(FIVE_ALSO_FOR_DEFAULT x86-64-v3)
endif()
set(FIVE_ALSO_FOR "${FIVE_ALSO_FOR_DEFAULT}" CACHE STRING "A processor that gets a core of its own, chosen when it is loaded: x86-64-v3 or empty")

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
# A snapshot is of use to a core of the same sources only: their fingerprint, rewritten when one changes.
set(DOTA_CORE ${CMAKE_CURRENT_LIST_DIR}/core)
file(GLOB_RECURSE DOTA_HEADERS CONFIGURE_DEPENDS ${DOTA_CORE}/*.hpp)
set(DOTA_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${DOTA_GENERATED}/core_sources.hpp
                   COMMAND ${CMAKE_COMMAND} -DROOT=${DOTA_CORE} -DOUT=${DOTA_GENERATED}/core_sources.hpp
                           -P ${DOTA_CORE}/sources.cmake
                   DEPENDS ${DOTA_SOURCES} ${DOTA_HEADERS} ${DOTA_CORE}/sources.cmake)
add_custom_target(dota_core_sources DEPENDS ${DOTA_GENERATED}/core_sources.hpp)

if(FIVE_PROFILE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "FIVE_PROFILE (make build PGO=1) knows gcc's records only, not ${CMAKE_CXX_COMPILER_ID}'s: set CXX=g++")
endif()
if(FIVE_PROFILE AND NOT FIVE_PROFILE MATCHES "^(record|use)$")
  message(FATAL_ERROR "FIVE_PROFILE is '${FIVE_PROFILE}': it must be record, use or empty")
endif()
if(FIVE_PROFILE AND FIVE_ALSO_FOR)
  message(FATAL_ERROR "FIVE_PROFILE is a record of one core, FIVE_ALSO_FOR asks for a second one: leave one of them empty")
endif()
if(FIVE_LTO AND NOT FIVE_SANITIZE AND NOT FIVE_PROFILE STREQUAL "record")
  include(CheckIPOSupported)
  check_ipo_supported(RESULT FIVE_LTO_WORKS OUTPUT FIVE_LTO_SAYS LANGUAGES CXX)
  if(NOT FIVE_LTO_WORKS)
    message(STATUS "The core is not optimised across its sources, which this compiler cannot do: ${FIVE_LTO_SAYS}")
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

# The game core as the library `library`, for the processor `arch` (empty: for any).
function(add_core_library library arch)
  add_library(${library} STATIC ${DOTA_SOURCES})
  add_dependencies(${library} dota_core_sources)
  target_include_directories(${library} PRIVATE ${DOTA_GENERATED})
  target_include_directories(${library} PUBLIC ${DOTA_CORE})
  target_link_libraries(${library} PUBLIC Threads::Threads)
  # Contraction is off so that a game's state hash does not depend on the compiler's use of fused operations.
  target_compile_options(${library} PUBLIC -ffp-contract=off)
  target_compile_options(${library} PRIVATE -Wall -Wextra)
  # No result changes by it: errno is not looked at, nor are the processor's floating-point flags.
  target_compile_options(${library} PRIVATE -fno-math-errno -fno-trapping-math)
  # Four fifths of the time a source took to compile went into these headers.
  target_precompile_headers(${library} PRIVATE <algorithm> <cmath> <string> <vector> ${DOTA_CORE}/world/world.hpp
                            ${DOTA_CORE}/map/map_data.hpp ${DOTA_CORE}/effects/program_node.hpp)
  if(arch)
    target_compile_options(${library} PRIVATE -march=${arch})
  endif()
  if(FIVE_PROFILE STREQUAL "record")
    # What is recorded runs on one thread (tools/record_profile.py); counting for several takes longer.
    target_compile_options(${library} PRIVATE -fprofile-generate=${FIVE_PROFILE_DIR} -fprofile-update=single)
    target_link_options(${library} INTERFACE -fprofile-generate=${FIVE_PROFILE_DIR})
  elseif(FIVE_PROFILE STREQUAL "use")
    # What was not run while recording (a hero, an item) is compiled as without a record, not for size.
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

# The Python module dota._core of `library`, as the target `module`, in `folder` of the package.
function(add_core_module module library folder)
  if(FIVE_SANITIZE)
    set(symbols NOSTRIP)  # without them a report names neither functions nor lines
  endif()
  nanobind_add_module(${module} NB_STATIC NOMINSIZE ${symbols} ${DOTA_BINDINGS})
  set_target_properties(${module} PROPERTIES OUTPUT_NAME _core
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder})
  target_link_libraries(${module} PRIVATE ${library})
  if(FIVE_LTO_WORKS)
    # The bindings themselves, a page of calls each, would only take longer to build.
    target_link_options(${module} PRIVATE ${CMAKE_CXX_LINK_OPTIONS_IPO} ${CMAKE_CXX_COMPILE_OPTIONS_IPO})
    # gcc 12 warns of strings longer than memory in `text + string` (its bug 105329).
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
  # dota/processor.py looks for it in the folder that has the processor's name.
  add_core_library(dota_core_newer "${FIVE_ALSO_FOR}")
  add_core_module(_core_newer dota_core_newer "${FIVE_ALSO_FOR}")
endif()
