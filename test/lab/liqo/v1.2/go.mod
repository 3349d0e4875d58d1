// What the lab builds is a patched copy of this module, by its own go.mod.
module github.com/capacitorset/liqo-broker/test/lab/liqo/v1.2

go 1.26

require github.com/liqotech/liqo v1.2.0 // indirect
