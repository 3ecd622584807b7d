# The simulator as WebAssembly, for the pages of `rehearse report --live` and `rehearse lessons`:
# engine, cluster, planner, readers and what a page needs. tools/viewer/build runs this with
# Debian's emscripten; the result is in the repository, so that nobody else needs emscripten.
# Left out: real runs, gzip, XML, protobuf, other programs' traces, threads (absent.cc stands in
# for them).
set(live ${PROJECT_SOURCE_DIR}/tools/viewer/live)

# Headers of other projects that need no library, and nothing from this machine's C library.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(name boost nlohmann fmt)
  file(CREATE_LINK /usr/include/${name} ${headers}/${name} SYMBOLIC)
endforeach()

set(sources "")
foreach(folder sim topology collectives workloads scenarios/readers scenarios/playing scenarios/reporting)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc ${PROJECT_SOURCE_DIR}/${folder}/*/*.cc)
  list(APPEND sources ${found})
endforeach()
list(FILTER sources EXCLUDE REGEX "/(sim/base/gzip|sim/base/progress_line|sim/base/text_stream|sim/report/perfetto_trace|sim/report/timeline_svg|sim/report/timeline_gantt|topology/view/cluster_(dot|json|summary|table|text)|scenarios/playing/(execution|calibrated|first_scenario)|scenarios/reporting/stacked_picture)\\.cc$")
rehearse_join(sources)
list(APPEND sources ${live}/entry.cc ${live}/heap.cc ${live}/absent.cc)

set(file ${PROJECT_BINARY_DIR}/version.cc)
file(WRITE ${file} "#include \"sim/base/version.h\"\n\nnamespace rehearse {\n
std::string_view Version() { return \"${PROJECT_VERSION}\"; }\nstd::string_view BuildCommit() { return \"\"; }\n
}  // namespace rehearse\n")

add_executable(simulator ${sources} ${file})
target_include_directories(simulator PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(simulator SYSTEM PRIVATE ${headers})
target_compile_definitions(simulator PRIVATE FMT_HEADER_ONLY BOOST_ALL_NO_LIB)
# emcc leaves inlining to the linker's optimizer, which does only a fifth of it.
target_compile_options(simulator PRIVATE -O3 -finline-functions -fwasm-exceptions "SHELL:-include ${live}/missing_std.h")
# What reads, draws and writes takes no time to speak of, and half of the bundle: it is made small.
foreach(source IN LISTS sources)
  if(source MATCHES "(scenarios_playing|scenarios_readers|scenarios_reporting|sim_base|sim_packets|sim_report|topology_presets|topology_files|topology_view|workloads_networks)_[0-9]+\\.cc$")
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Os)
  endif()
endforeach()
target_link_options(simulator PRIVATE -O3 -fwasm-exceptions --no-entry -sALLOW_MEMORY_GROWTH=1
  -sINITIAL_MEMORY=32MB -sTOTAL_STACK=4MB -sENVIRONMENT=worker,node
  -sEXPORTED_FUNCTIONS=_malloc,_free,_rehearse_play,_rehearse_size -sEXPORTED_RUNTIME_METHODS=HEAPU8)
