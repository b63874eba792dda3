# Objects of earlier builds of the same sources, in this folder or another, with ccache, where it is installed;
# CHAINFOLD_CCACHE=OFF does without.
option(CHAINFOLD_CCACHE "Take objects from ccache where it is installed" ON)
find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(NOT CHAINFOLD_CCACHE OR NOT CCACHE OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()

# Paths count relative to the sources, and precompiled headers by a checksum of what they hold (ccache.sh).
set(settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_PCH_EXTSUM=1)
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${settings}
    ${PROJECT_SOURCE_DIR}/cmake/ccache.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CCACHE})
endforeach()
# Without these a precompiled header hides from ccache what was read, and clang's holds the time of its making.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
