# fmt compiled once and hidden: chainfold_fmt, for everything here that formats. Debian has it as a shared
# library and as headers only; a shared one would be needed wherever libchainfold runs, and headers cost four
# seconds in each of 250 files. Versions before 9 are split between header and source in other ways.
find_package(fmt REQUIRED)
if(fmt_VERSION VERSION_LESS 9)
  add_library(chainfold_fmt INTERFACE)
  target_link_libraries(chainfold_fmt INTERFACE fmt::fmt-header-only)
  return()
endif()
add_library(chainfold_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt/format.cpp)
set_target_properties(chainfold_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
get_target_property(FMT_HEADERS fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(chainfold_fmt SYSTEM PUBLIC ${FMT_HEADERS})
target_link_libraries(chainfold_fmt PRIVATE chainfold_options)
